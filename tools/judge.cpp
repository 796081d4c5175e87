// SPDX-License-Identifier: BSD-2-Clause
#include "tools/judge.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "tools/text.hpp"

namespace spinkick::report {
namespace {

std::string text_of(const Counts& counts) {
    return fmt::format("pass={} fail={} error={} skip={}", counts.pass, counts.fail, counts.error, counts.skip);
}

Counts counts_in(const Stream& stream) {
    Counts counts;
    for (const auto& [number, test] : stream.tests) {
        if (!test.status)
            continue;
        switch (*test.status) {
        case Status::pass:
            ++counts.pass;
            break;
        case Status::fail:
            ++counts.fail;
            break;
        case Status::error:
            ++counts.error;
            break;
        case Status::skip:
            ++counts.skip;
            break;
        case Status::not_run:
            break;
        }
    }
    return counts;
}

/// Names that stand for more than one test.
std::vector<std::string> equal_names(const Stream& stream) {
    std::map<std::string, int> uses;
    for (const auto& [number, test] : stream.tests)
        ++uses[test.name];
    std::vector<std::string> equal;
    for (const auto& [name, count] : uses)
        if (count > 1)
            equal.push_back(name);
    return equal;
}

/// Everything in which the log disagrees with its own verdict line.
std::vector<std::string> disagreements(const Stream& stream, const VerdictLine& verdict) {
    std::vector<std::string> found = stream.conflicts;
    if (stream.verdicts_differ)
        found.emplace_back("verdict lines differ from each other");
    if (stream.plan && *stream.plan != verdict.plan)
        found.push_back(fmt::format("plan is 1..{} but the verdict has plan={}", *stream.plan, verdict.plan));
    if (const Counts seen = counts_in(stream); seen != verdict.counts)
        found.push_back(fmt::format("verdict counts {} but the log shows {}", text_of(verdict.counts), text_of(seen)));
    if (word_of(verdict.counts) != verdict.word)
        found.push_back(fmt::format("verdict {} does not follow from its own counts {}", name_of(verdict.word),
                                    text_of(verdict.counts)));

    std::uint32_t missing = 0;
    std::string first;
    for (std::uint32_t number = 1; number <= verdict.plan; ++number) {
        const auto test = stream.tests.find(number);
        if (test != stream.tests.end() && test->second.status)
            continue;
        if (missing++ == 0)
            first = test == stream.tests.end() ? fmt::format("{}", number)
                                               : fmt::format("{} {}", number, test->second.name);
        // A plan is a number from the stream: do not count to thousands of millions to say that most are missing.
        if (missing > stream.tests.size() + 1'000)
            break;
    }
    if (missing != 0)
        found.push_back(fmt::format("no result for test {}{}", first,
                                    missing == 1 ? "" : fmt::format(" and {} more", missing - 1)));
    if (!stream.tests.empty() && stream.tests.rbegin()->first > verdict.plan)
        found.push_back(fmt::format("test {} is beyond plan={}", stream.tests.rbegin()->first, verdict.plan));
    return found;
}

std::string and_running(std::string text, const Stream& stream) {
    if (const std::string running = stream.running_text(); !running.empty())
        text += "; " + running;
    return text;
}

constexpr int kXenPoweroff = 0;

/// "3 (crash)"
std::string text_of_xen_shutdown(int reason) {
    constexpr std::array kNames = {"poweroff", "reboot", "suspend", "crash", "watchdog", "soft reset"};
    const bool known = reason >= 0 && static_cast<std::size_t>(reason) < kNames.size();
    return fmt::format("{} ({})", reason, known ? kNames[static_cast<std::size_t>(reason)] : "unknown");
}

/// The run has a verdict line that its checksum vouches for.
Judgement judge_verdict(const Stream& stream, const VerdictLine& verdict, const Ending& ending) {
    const auto word = name_of(verdict.word);
    const auto contradiction = [](std::string text) { return Judgement{Word::ERROR, std::move(text), {}}; };

    if (stream.panic && !stream.panic_after_verdict)
        return {Word::CRASH, fmt::format("PANIC: {} (and yet a verdict line follows: {})", *stream.panic, word), {}};
    if (stream.panic)
        return contradiction(fmt::format("the kernel panicked after its verdict {}: {}", word, *stream.panic));
    if (stream.restarted)
        return contradiction(fmt::format("the guest started again after its verdict {}", word));
    if (verdict.word == Word::ERROR && stream.error) {
        // Bad input: there is no plan, so there are no counts to agree with.
        if (ending.qemu_exit && *ending.qemu_exit != qemu_exit_for(Word::ERROR) &&
            !(*ending.qemu_exit == 0 && stream.exit_device_absent))
            return contradiction(fmt::format("{} (and QEMU ended with {}, where ERROR is {})", *stream.error,
                                             *ending.qemu_exit, qemu_exit_for(Word::ERROR)));
        return contradiction(*stream.error);
    }
    if (const auto found = disagreements(stream, verdict); !found.empty()) {
        std::string text = fmt::format("verdict line {} is not believed: {}", word, found.front());
        for (std::size_t i = 1; i < found.size() && i < 4; ++i)
            text += "; " + found[i];
        return contradiction(std::move(text));
    }
    if (ending.timed_out)
        return contradiction(
            fmt::format("verdict line says {}, but the guest did not end and had to be stopped", word));
    if (ending.qemu_exit && *ending.qemu_exit != qemu_exit_for(verdict.word) &&
        !(*ending.qemu_exit == 0 && stream.exit_device_absent))
        return contradiction(fmt::format("verdict line says {} (QEMU exit code {}), but QEMU ended with {}", word,
                                         qemu_exit_for(verdict.word), *ending.qemu_exit));
    if (ending.xen_shutdown && *ending.xen_shutdown != kXenPoweroff)
        return contradiction(fmt::format("verdict line says {}, but the domain ended with reason {}, not {}", word,
                                         text_of_xen_shutdown(*ending.xen_shutdown),
                                         text_of_xen_shutdown(kXenPoweroff)));
    if (const auto equal = equal_names(stream); !equal.empty() && verdict.word != Word::FAIL)
        return contradiction(fmt::format("two tests have the name {}: names must be unique", equal.front()));
    return {verdict.word, "", {}};
}

/// The word that QEMU's exit code stands for; nothing if the image did not choose it.
std::optional<Word> word_of_exit_device(int code) {
    for (const Word word : {Word::PASS, Word::FAIL, Word::ERROR, Word::SKIP})
        if (code == qemu_exit_for(word))
            return word;
    return std::nullopt;
}

/// The run has none: what happened instead?
Judgement judge_silence(const Stream& stream, const Ending& ending) {
    // QEMU's own errors end with 1, its assertions and crashes with 128 + signal; the exit device gives neither.
    constexpr int kQemuError = 1;
    constexpr int kSignal = 128;
    const std::string damaged = stream.damaged_verdicts == 0
                                    ? ""
                                    : fmt::format(" ({} verdict line{} with a wrong checksum or cut)",
                                                  stream.damaged_verdicts, stream.damaged_verdicts == 1 ? "" : "s");
    if (stream.panic)
        return {Word::CRASH, and_running("PANIC: " + *stream.panic, stream), {}};
    if (stream.restarted)
        return {Word::CRASH, and_running("the guest was reset before its verdict and started again", stream), {}};
    if (ending.timed_out) {
        if (!stream.started())
            return {Word::HANG,
                    stream.bytes == 0 ? "not one byte on the serial line in time"
                                      : "no line of the image on the serial line in time",
                    {}};
        return {Word::HANG, and_running("no verdict in time" + damaged, stream), {}};
    }
    const int code = ending.qemu_exit.value_or(0);
    // A machine without a serial port runs all the same; what it says by one byte is believed to be a run, not a pass.
    if (const auto word = word_of_exit_device(code); word && stream.bytes == 0)
        return {
            Word::ERROR,
            fmt::format("not one byte on the serial line, and the exit device says {}: give the machine a serial port",
                        name_of(*word)),
            {}};
    if (code == kQemuError || code >= kSignal || code < 0)
        return {Word::ERROR,
                and_running(fmt::format("QEMU itself ended with {} {}", code,
                                        stream.started() ? "before the verdict" : "before the image wrote a line"),
                            stream),
                {}};
    if (!stream.started() && !ending.qemu_exit && !ending.xen_shutdown)
        return {Word::ERROR,
                stream.bytes == 0 ? "the serial log is empty" : "the serial log holds no line of the image",
                {}};
    std::string text =
        stream.started() ? "the guest ended before its verdict" : "the guest ended before its first line";
    if (ending.qemu_exit)
        text += fmt::format(" (QEMU exit code {})", code);
    if (ending.xen_shutdown)
        text += fmt::format(" (shutdown reason {})", text_of_xen_shutdown(*ending.xen_shutdown));
    return {Word::CRASH, and_running(text + damaged, stream), {}};
}

} // namespace

ExitCode exit_code_of(Word word) noexcept {
    switch (word) {
    case Word::PASS:
        return ExitCode::pass;
    case Word::FAIL:
        return ExitCode::fail;
    case Word::ERROR:
        return ExitCode::error;
    case Word::SKIP:
        return ExitCode::skip;
    case Word::CRASH:
        return ExitCode::crash;
    case Word::HANG:
        return ExitCode::hang;
    }
    return ExitCode::error;
}

Word worst(Word a, Word b) noexcept {
    for (const Word word : {Word::FAIL, Word::CRASH, Word::HANG, Word::ERROR, Word::SKIP})
        if (a == word || b == word)
            return word;
    return Word::PASS;
}

int qemu_exit_for(Word word) noexcept {
    // isa-debug-exit ends QEMU with (value << 1) | 1; the values are the image's.
    const int value = [word] {
        switch (word) {
        case Word::PASS:
            return 0x10;
        case Word::FAIL:
            return 0x11;
        case Word::ERROR:
            return 0x12;
        case Word::SKIP:
            return 0x14;
        case Word::CRASH:
        case Word::HANG:
            break;
        }
        return 0x13;
    }();
    return (value << 1) | 1;
}

Judgement judge(const Stream& stream, const Ending& ending) {
    Judgement judgement =
        stream.verdict ? judge_verdict(stream, *stream.verdict, ending) : judge_silence(stream, ending);
    if (stream.nul_bytes != 0)
        judgement.notes.push_back(fmt::format("the log holds {} NUL bytes: parts of it may be lost", stream.nul_bytes));
    if (stream.damaged_records != 0)
        judgement.notes.push_back(fmt::format("{} measurement record{} could not be read", stream.damaged_records,
                                              stream.damaged_records == 1 ? "" : "s"));
    if (stream.verdict && stream.damaged_verdicts != 0)
        judgement.notes.push_back(fmt::format("{} of the verdict lines damaged", stream.damaged_verdicts));
    if (stream.verdict && !stream.plan && !stream.error)
        judgement.notes.emplace_back("the plan line is missing; the plan is the verdict's");
    if (stream.verdict && stream.exit_device_absent)
        judgement.notes.emplace_back("no exit device: the verdict is the log's alone");
    return judgement;
}

std::vector<StreamTest> believed_tests(const Stream& stream, const Judgement& judgement) {
    const bool image_spoke = judgement.reason.empty();
    std::uint32_t last = stream.plan.value_or(image_spoke && stream.verdict ? stream.verdict->plan : 0);
    if (!stream.tests.empty())
        last = std::max(last, stream.tests.rbegin()->first);
    std::vector<StreamTest> tests;
    for (std::uint32_t number = 1; number <= last; ++number) {
        const auto known = stream.tests.find(number);
        StreamTest test = known == stream.tests.end() ? StreamTest{} : known->second;
        if (test.name.empty())
            test.name = fmt::format("unknown.test_{}", number);
        if (test.status == Status::pass && test.glued && !image_spoke) {
            test.status = Status::not_run;
            test.reason = "its result line was damaged";
        } else if (!test.status) {
            test.status = Status::not_run;
            test.reason = test.begun ? "it began and has no result" : "";
        }
        tests.push_back(std::move(test));
    }
    return tests;
}

} // namespace spinkick::report
