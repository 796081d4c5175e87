// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/test/monitor.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "kernel/clock.hpp"
#include "kernel/console.hpp"
#include "kernel/glob.hpp"
#include "kernel/log.hpp"
#include "kernel/machine.hpp"
#include "kernel/options.hpp"
#include "kernel/stress/workers.hpp"
#include "kernel/sync/events.hpp"
#include "kernel/test/environment.hpp"
#include "kernel/test/line_reader.hpp"
#include "kernel/test/runner.hpp"
#include "kernel/text.hpp"

namespace spinkick::test {
namespace {

using namespace std::string_view_literals;

struct State {
    const Registry* registry = nullptr;
    LineReader reader{};
    Counts counts{};
    std::array<char, CommandLine::kMostBytes + 1> boot{};     ///< the boot's words
    std::array<char, CommandLine::kMostBytes + 1> settings{}; ///< words of `set`, behind them
    std::size_t boot_size = 0, settings_size = 0;
    bool test_runs = false;
    bool waits = false; ///< the reader's line, for the end of the test; what comes behind it waits with it
    bool leaves = false;
    std::array<std::uint64_t, sync::kLockEvents> events_before{}; ///< at the last `reset`
};
constinit State state{};
/// What a test obeys while it runs, and what a line becomes before it counts: a bad one changes nothing.
constinit CommandLine of_test{}, candidate{};

int shown(std::string_view text) noexcept { return static_cast<int>(std::min<std::size_t>(text.size(), 200)); }

/// Characters before the first `c`; all if there is none.
std::size_t before(std::string_view text, char c) noexcept {
    return static_cast<std::size_t>(std::find(text.begin(), text.end(), c) - text.begin());
}

std::string_view first_word(std::string_view& rest) noexcept {
    while (!rest.empty() && rest.front() == ' ')
        rest.remove_prefix(1);
    const auto size = before(rest, ' ');
    const auto word = rest.substr(0, size);
    rest.remove_prefix(size);
    while (!rest.empty() && rest.front() == ' ')
        rest.remove_prefix(1);
    return word;
}

/// The boot's words, those of `set`, and `more`, as one command line. False: `error` says what is wrong.
bool parse_into(CommandLine& out, std::string_view settings, std::string_view more, ErrorText& error) noexcept {
    static constinit std::array<char, CommandLine::kMostBytes + 1> storage{};
    TextBuffer text(storage);
    text.append({state.boot.data(), state.boot_size});
    text.append(settings);
    text.append(" "sv);
    text.append(more);
    text.append(" end=1"sv);
    if (text.size() + 1 >= storage.size()) {
        error.set("more words than a command line of %zu characters holds", CommandLine::kMostBytes);
        return false;
    }
    std::destroy_at(&out);
    std::construct_at(&out);
    return parse_command_line(text.view(), out, error);
}

// --- the commands
// -----------------------------------------------------------------------------------------------------

void help(std::string_view) noexcept {
    for (const char* line :
         {"help                          this", "locks                         the locks, and which can run here",
          "tests [PATTERN]               the tests, with their claims",
          "run TEST[,TEST] [KEY=VALUE]   run tests; the words are those of the kernel's command line, for this once",
          "set KEY VALUE                 the same, from now on: spin_threshold, byte_timeout, wait_early, stealing "
          "...;",
          "                              switches of the locks act at once, also while a test runs",
          "stats                         the locks' counters since `reset`",
          "reset                         their zero is now",
          "dump                          where each CPU is, what it waits for and holds, its last events",
          "trace [LOCK]                  record how a lock is handed around; the runner makes trace.json of it",
          "quit                          the verdict, and the end"})
        log("# %s", line);
}

void locks(std::string_view) noexcept {
    (void)state.registry->for_each([](const Test& test) {
        const auto same = [&test](const Test& other) {
            return other.lock == test.lock && other.backend == test.backend;
        };
        // The first test of a lock speaks for it.
        const Test* first = nullptr;
        (void)state.registry->for_each([&](const Test& other) {
            first = same(other) ? &other : nullptr;
            return first == nullptr;
        });
        if (test.lock.empty() || first != &test)
            return true;
        const auto reason = backend_unavailable_reason(test.needs);
        log("# %.*s/%.*s%s%.*s", shown(test.lock), test.lock.data(), shown(test.backend), test.backend.data(),
            reason.empty() ? "" : ": ", shown(reason), reason.data());
        return true;
    });
}

void tests(std::string_view pattern) noexcept {
    std::uint32_t count = 0;
    (void)state.registry->for_each([&](const Test& test) {
        const TestName name(test);
        if (!pattern.empty() && !glob_match(pattern, name.view()) && !glob_match(pattern, test.name))
            return true;
        ++count;
        log("# %s: %.*s%s", name.view().data(), shown(test.claim), test.claim.data(),
            test.on_request ? " (on request: run it by its full name)" : "");
        return true;
    });
    log("# %u tests", count);
}

void run_tests(std::string_view words, std::string_view more) noexcept {
    ErrorText error;
    static constinit std::array<char, CommandLine::kMostBytes + 1> storage{};
    TextBuffer text(storage);
    text.append("tests="sv);
    text.append(words);
    text.append(" "sv);
    text.append(more);
    if (!parse_into(candidate, {state.settings.data(), state.settings_size}, text.view(), error)) {
        log("# error: %s", error.c_str());
        return;
    }
    // Cannot fail where the candidate did not.
    (void)parse_into(of_test, {state.settings.data(), state.settings_size}, text.view(), error);
    apply_tuning(of_test);
    workers::set_watchdog(milliseconds(of_test.watchdog_ms));
    state.test_runs = true;
    if (!run_more(*state.registry, of_test, state.counts, error))
        log("# error: %s", error.c_str());
    state.test_runs = false;
    (void)parse_into(of_test, {state.settings.data(), state.settings_size}, ""sv, error);
    apply_tuning(of_test); // its own words were for this once
    workers::set_watchdog(milliseconds(of_test.watchdog_ms));
}

void run_command(std::string_view rest) noexcept {
    const auto what = first_word(rest);
    if (what.empty())
        log("# error: run what? `tests` lists them");
    else
        run_tests(what, rest);
}

void trace(std::string_view rest) noexcept {
    const auto lock = first_word(rest);
    if (lock.empty())
        return run_tests("trace.default_lock"sv, rest);
    std::array<char, LineReader::kMost + 8> storage{};
    TextBuffer words(storage);
    words.append("locks="sv);
    words.append(lock);
    run_tests("trace.contention"sv, words.view());
}

/// "KEY VALUE" and "KEY=VALUE" are the same.
/// The words of `set` without the one for `key`, which is set anew.
void append_others(TextBuffer& text, std::string_view key) noexcept {
    std::string_view rest{state.settings.data(), state.settings_size};
    for (auto word = first_word(rest); !word.empty(); word = first_word(rest)) {
        if (word.substr(0, before(word, '=')) == key)
            continue;
        text.append(" "sv);
        text.append(word);
    }
}

void set(std::string_view rest) noexcept {
    std::array<char, LineReader::kMost + 8> storage{};
    TextBuffer word(storage);
    const auto key = first_word(rest);
    const bool is_one_word = before(key, '=') != key.size();
    if (key.empty() || is_one_word != rest.empty() || before(rest, ' ') != rest.size()) {
        log("# error: set KEY VALUE is wanted, such as: set spin_threshold 4096");
        return;
    }
    word.append(" "sv);
    word.append(key);
    if (!is_one_word) {
        word.append("="sv);
        word.append(rest);
    }
    ErrorText error;
    static constinit std::array<char, CommandLine::kMostBytes + 1> settings{};
    TextBuffer text(settings);
    append_others(text, key.substr(0, before(key, '=')));
    text.append(word.view());
    if (!parse_into(candidate, text.view(), ""sv, error)) {
        log("# error: %s", error.c_str());
        return;
    }
    std::copy(text.view().begin(), text.view().end(), state.settings.begin());
    state.settings_size = text.size();
    apply_tuning(candidate);
    log("# set%s%s", word.c_str(), state.test_runs ? ": the locks' switches now, all else with the next test" : "");
}

std::uint64_t events(std::size_t event) noexcept {
    std::uint64_t sum = 0;
    for (std::uint32_t n = 0; n < machine::cpu_count(); ++n)
        sum += machine::lock_event(machine::online_cpu(n), static_cast<sync::LockEvent>(event));
    return sum;
}

void stats(std::string_view) noexcept {
    bool any = false;
    for (std::size_t event = 0; event < sync::kLockEvents; ++event) {
        const auto count = events(event) - state.events_before[event];
        if (count == 0)
            continue;
        any = true;
        log("# %s %llu", sync::kLockEventNames[event].data(), static_cast<unsigned long long>(count));
    }
    if (!any)
        log("# all counters are 0");
}

void reset(std::string_view) noexcept {
    for (std::size_t event = 0; event < sync::kLockEvents; ++event)
        state.events_before[event] = events(event);
    log("# counters are 0 from now on");
}

void dump(std::string_view) noexcept { workers::dump(); }

void quit(std::string_view) noexcept { state.leaves = true; }

struct Command {
    std::string_view name;
    void (*run)(std::string_view rest) noexcept;
    bool while_a_test_runs;
};
constexpr std::array kCommands{Command{"help"sv, help, true},    Command{"locks"sv, locks, true},
                               Command{"tests"sv, tests, true},  Command{"run"sv, run_command, false},
                               Command{"set"sv, set, true},      Command{"stats"sv, stats, true},
                               Command{"reset"sv, reset, true},  Command{"dump"sv, dump, true},
                               Command{"trace"sv, trace, false}, Command{"quit"sv, quit, false}};

void obey(const LineReader& reader) noexcept {
    if (reader.is_too_long()) {
        log("# error: a line has more than %zu characters, and was not read", LineReader::kMost);
        return;
    }
    auto rest = reader.line();
    const auto name = first_word(rest);
    const auto* const command =
        std::find_if(kCommands.begin(), kCommands.end(), [&](const Command& c) { return c.name == name; });
    if (name.empty())
        return;
    if (command == kCommands.end()) {
        log("# error: %.*s: no command; `help` lists them", shown(name), name.data());
    } else if (state.test_runs && !command->while_a_test_runs) {
        state.waits = true;
        log("# %.*s: waits for the end of the test that runs", shown(name), name.data());
    } else {
        command->run(rest);
    }
}

// --- input
// ------------------------------------------------------------------------------------------------------------

/// While a test runs: from the watchdog's interrupt. Bounded, whatever comes in.
void look_while_a_test_runs() noexcept {
    constexpr std::uint32_t kMostBytes = 64;
    for (std::uint32_t i = 0; i < kMostBytes && !state.waits; ++i) {
        const auto byte = console_read();
        if (!byte)
            return;
        if (!state.reader.take(*byte))
            continue;
        obey(state.reader);
        if (!state.waits)
            log("# monitor: done");
    }
}

struct Input {
    std::optional<char> byte;
};
bool has_byte(void* argument) {
    auto& input = *static_cast<Input*>(argument);
    if (!input.byte)
        input.byte = console_read();
    return input.byte.has_value();
}
void nothing() noexcept {}

char next_byte() noexcept {
    constexpr Nanoseconds kLook = milliseconds(20);
    Input input;
    machine::set_tick(nothing, kLook); // ends the sleep
    while (!has_byte(&input))
        machine::idle_unless(has_byte, &input);
    machine::set_tick(nullptr, kLook);
    return *input.byte;
}

/// The boot's words without what the monitor puts in their place.
void keep_words_of_boot(const CommandLine& line) noexcept {
    TextBuffer text(state.boot);
    auto rest = line.view();
    for (auto word = first_word(rest); !word.empty(); word = first_word(rest)) {
        if (word == "end=1"sv || word == "monitor"sv || word.substr(0, 6) == "tests="sv)
            continue;
        text.append(word);
        text.append(" "sv);
    }
    state.boot_size = text.size();
}

} // namespace

Verdict run_monitor(const Registry& registry, const CommandLine& line) noexcept {
    ErrorText error;
    if (!registry.check(error))
        return report_bad_input(error.view());
    std::destroy_at(&state);
    std::construct_at(&state);
    state.registry = &registry;
    keep_words_of_boot(line);
    (void)parse_into(of_test, ""sv, ""sv, error); // these words have been read before
    options::use(of_test);
    report_header();
    workers::set_look_hook(look_while_a_test_runs);
    log("# monitor: `help` lists the commands");
    while (!state.leaves) {
        log("# monitor: ready");
        if (!state.waits) {
            while (!state.reader.take(next_byte()))
                ;
        }
        state.waits = false;
        obey(state.reader);
    }
    workers::set_look_hook(nullptr);
    report_machine_faults();
    report_plan(state.counts.plan);
    return report_verdict(state.counts);
}

} // namespace spinkick::test
