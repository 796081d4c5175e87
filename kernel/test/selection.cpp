// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/test/selection.hpp"

#include <algorithm>

#include "kernel/glob.hpp"

namespace spinkick::test {
namespace {

/// What soak= asks for.
constexpr std::string_view kSoakSuite = "soak.*";

bool name_matches(std::string_view glob, const Test& test, const TestName& name) noexcept {
    return glob_match(glob, name.view()) || glob_match(glob, test.name);
}

bool asks_for(std::string_view glob, const Test& test, const TestName& name) noexcept {
    return name_matches(glob, test, name) && (!test.on_request || is_literal(glob));
}

bool lock_matches(std::string_view glob, const Test& test) noexcept {
    if (test.lock.empty())
        return false;
    const TestName place(Test{.name = test.lock, .lock = test.backend, .backend = {}, .claim = {}});
    return glob_match(glob, test.lock) || glob_match(glob, place.view());
}

template <class Match>
bool any(const GlobList& globs, Match match) noexcept {
    const auto items = globs.items();
    return std::any_of(items.begin(), items.end(), match);
}

/// False, with an error, if `match(glob, test)` is true for no test for one of the patterns.
template <class Match>
bool each_matches(const char* key, const GlobList& globs, const Registry& registry, ErrorText& error,
                  Match match) noexcept {
    for (const std::string_view glob : globs.items()) {
        if (!registry.for_each([&](const Test& test) { return !match(glob, test); }))
            continue;
        const auto size = static_cast<int>(std::min<std::size_t>(glob.size(), 60));
        // The usual mistake: a pattern over tests that run on request only.
        const bool on_request_only = !registry.for_each(
            [&](const Test& test) { return !(test.on_request && name_matches(glob, test, TestName(test))); });
        if (on_request_only)
            error.set("%s=%.*s: matches only tests that must be named in full, without * or ?", key, size, glob.data());
        else
            error.set("%s=%.*s: matches nothing in this image; the word list shows what there is", key, size,
                      glob.data());
        return false;
    }
    return true;
}

} // namespace

bool is_selected(const Test& test, const CommandLine& line) noexcept {
    const TestName name(test);
    const bool is_asked_soak = line.soak_s != 0 && glob_match(kSoakSuite, test.name);
    const bool by_default = line.soak_s != 0 ? is_asked_soak : !test.on_request;
    const bool asked = line.tests.empty()
                           ? by_default
                           : is_asked_soak || any(line.tests, [&](auto glob) { return asks_for(glob, test, name); });
    if (!asked)
        return false;
    if (!test.lock.empty() && !line.locks.empty() &&
        !any(line.locks, [&](auto glob) { return lock_matches(glob, test); }))
        return false;
    return !any(line.skip, [&](auto glob) { return name_matches(glob, test, name); });
}

bool check_patterns(const Registry& registry, const CommandLine& line, ErrorText& error) noexcept {
    return each_matches("tests", line.tests, registry, error,
                        [](auto glob, const Test& test) { return asks_for(glob, test, TestName(test)); }) &&
           each_matches("skip", line.skip, registry, error,
                        [](auto glob, const Test& test) { return name_matches(glob, test, TestName(test)); }) &&
           each_matches("locks", line.locks, registry, error,
                        [](auto glob, const Test& test) { return lock_matches(glob, test); });
}

} // namespace spinkick::test
