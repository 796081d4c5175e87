// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/test/registry.hpp"

#include <algorithm>

namespace spinkick::test {
namespace {

/// A part is printable, has no blank and no sign with a meaning of its own in a result line or a pattern.
bool well_formed_part(std::string_view part) noexcept {
    return std::all_of(part.begin(), part.end(), [](char c) {
        return c > ' ' && c < 0x7f && c != '/' && c != '#' && c != '*' && c != '?' && c != ',' && c != '\\';
    });
}

bool well_formed(const Test& test) noexcept {
    const auto* const dot = std::find(test.name.begin(), test.name.end(), '.');
    return dot != test.name.begin() && dot != test.name.end() && dot + 1 != test.name.end() &&
           well_formed_part(test.name) && well_formed_part(test.lock) && well_formed_part(test.backend);
}

/// Hashes of all names, so that looking for equals does not compare texts: one run of it per boot, before any test.
constinit std::uint64_t hashes[kMostTests];

} // namespace

TestName::TestName(const Test& test) noexcept {
    TextBuffer out(storage_);
    for (const std::string_view part : {test.name, test.lock, test.backend}) {
        if (part.empty())
            continue;
        if (!out.empty())
            out.append('/');
        out.append(part);
    }
    size_ = out.size();
    too_long_ = out.truncated();
}

std::uint64_t TestName::hash() const noexcept {
    std::uint64_t h = 0xcbf29ce484222325;
    for (const char c : view())
        h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return h;
}

bool Registry::check(ErrorText& error) const noexcept {
    std::size_t count = 0;
    return for_each([&](const Test& test) {
        const TestName name(test);
        if (name.too_long() || !well_formed(test) || test.run == nullptr) {
            error.set("test %s: its name must be suite.claim of at most %zu plain characters, and it needs a body",
                      name.view().empty() ? "without a name" : name.view().data(), kNameBytes);
            return false;
        }
        if (count == kMostTests) {
            error.set("test %s: is one more than the %zu that an image can hold", name.view().data(), kMostTests);
            return false;
        }
        const std::uint64_t hash = name.hash();
        for (std::size_t i = 0; i < count; ++i) {
            if (hashes[i] == hash) {
                error.set("test %s: is registered twice; names must be unique", name.view().data());
                return false;
            }
        }
        hashes[count++] = hash;
        return true;
    });
}

} // namespace spinkick::test
