// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/command_line.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

#include "kernel/glob.hpp"

namespace spinkick::test {
namespace {

struct Parsed {
    std::unique_ptr<CommandLine> line = std::make_unique<CommandLine>();
    ErrorText error;
    bool ok = false;
};

Parsed parse(std::string_view text) {
    Parsed parsed;
    const std::string exact(text); // its own memory: a read past the end is AddressSanitizer's to find
    parsed.ok = parse_command_line(exact, *parsed.line, parsed.error);
    EXPECT_EQ(parsed.ok, parsed.error.empty()) << parsed.error.view();
    return parsed;
}

std::string error_of(std::string_view text) {
    const Parsed parsed = parse(std::string(text) + " end=1");
    return parsed.ok ? "no error" : std::string(parsed.error.view());
}

std::vector<std::string> strings(std::span<const std::string_view> views) { return {views.begin(), views.end()}; }
using Strings = std::vector<std::string>;

TEST(CommandLine, DefaultsWhenOnlyTheMarkerIsThere) {
    for (const char* const text : {"end=1", "marker=0", "  \t end=1 \n"}) {
        const Parsed parsed = parse(text);
        ASSERT_TRUE(parsed.ok) << parsed.error.view();
        const CommandLine& line = *parsed.line;
        EXPECT_TRUE(line.tests.empty());
        EXPECT_TRUE(line.skip.empty());
        EXPECT_TRUE(line.locks.empty());
        EXPECT_FALSE(line.list);
        EXPECT_EQ(line.seed, 1u);
        EXPECT_EQ(line.repeat, 0u);
        EXPECT_EQ(line.pairs, 1000u);
        EXPECT_EQ(line.jobs, 200u);
        EXPECT_EQ(line.load, JobLoad::all);
        EXPECT_EQ(line.limit_ms, 2000u);
        EXPECT_EQ(line.spin_threshold, 32768u);
        EXPECT_EQ(line.qspin_threshold, 16384u);
        EXPECT_EQ(line.byte_timeout, 1024u);
        EXPECT_EQ(line.relax, sync::RelaxHint::pause);
        EXPECT_EQ(line.directed_yield, sync::YieldMethod::off);
        EXPECT_EQ(line.wait_early, sync::WaitEarly::state);
        EXPECT_EQ(line.stealing, sync::Stealing::on);
        EXPECT_TRUE(line.kick_holder);
        EXPECT_EQ(line.evtchn, EventChannels::two_level);
        EXPECT_EQ(line.kick, KickChoice::automatic);
        EXPECT_EQ(line.paravirt, ParavirtChoice::automatic);
        EXPECT_FALSE(line.compact);
        EXPECT_TRUE(line.ignored.empty());
        EXPECT_EQ(line.view(), text);
    }
}

TEST(CommandLine, ATimeHasAUnit) {
    EXPECT_EQ(parse("soak=90 end=1").line->soak_s, 90u);
    EXPECT_EQ(parse("soak=90s end=1").line->soak_s, 90u);
    EXPECT_EQ(parse("soak=8m end=1").line->soak_s, 480u);
    for (const char* bad :
         {"soak=", "soak=m", "soak=0", "soak=-1s", "soak=1.5h", "soak=8d", "soak=169h", "soak=9999999999999999999h"}) {
        const auto parsed = parse(std::string(bad) + " end=1");
        EXPECT_FALSE(parsed.ok) << bad;
        EXPECT_NE(parsed.error.view().find("soak="), std::string_view::npos) << parsed.error.view();
    }
}

TEST(CommandLine, ReadsEveryKey) {
    const Parsed parsed =
        parse("tests=lock.*,smp.all_online skip=*/broken/* locks=pv-* list seed=0xfFfFfFfFfFfFfFfF duration_ms=50 "
              "bench_cpus=8 pairs=5000000 jobs=3000 load=heavy limit_ms=90000 repeat=7 "
              "spin_threshold=9223372036854775808 qspin_threshold=0 byte_timeout=1 relax=lfence directed_yield=bitmap "
              "wait_early=preempted "
              "stealing=entry kick_holder=off "
              "kick=remrd pv=force evtchn=fifo watchdog_ms=2000 soak=8h nmis=off linger_ms=1500 sync=on drop_starts=2 "
              "compact=1 "
              "end=1");
    ASSERT_TRUE(parsed.ok) << parsed.error.view();
    const CommandLine& line = *parsed.line;
    EXPECT_EQ(strings(line.tests.items()), (Strings{"lock.*", "smp.all_online"}));
    EXPECT_EQ(strings(line.skip.items()), Strings{"*/broken/*"});
    EXPECT_EQ(strings(line.locks.items()), Strings{"pv-*"});
    EXPECT_TRUE(line.list);
    EXPECT_EQ(line.seed, UINT64_MAX);
    EXPECT_EQ(line.duration_ms, 50u);
    EXPECT_EQ(line.soak_s, 8u * 3600);
    EXPECT_FALSE(line.nmis);
    EXPECT_EQ(line.linger_ms, 1500u);
    EXPECT_TRUE(line.sync);
    EXPECT_EQ(line.bench_cpus, 8u);
    EXPECT_EQ(line.pairs, 5'000'000u);
    EXPECT_EQ(line.jobs, 3000u);
    EXPECT_EQ(line.load, JobLoad::heavy);
    EXPECT_EQ(line.limit_ms, 90'000u);
    EXPECT_EQ(line.repeat, 7u);
    EXPECT_EQ(line.spin_threshold, 1ull << 63);
    EXPECT_EQ(line.qspin_threshold, 0u);
    EXPECT_EQ(line.byte_timeout, 1u);
    EXPECT_EQ(line.relax, sync::RelaxHint::lfence);
    EXPECT_EQ(line.directed_yield, sync::YieldMethod::bitmap);
    EXPECT_EQ(line.wait_early, sync::WaitEarly::preempted);
    EXPECT_EQ(line.stealing, sync::Stealing::entry);
    EXPECT_FALSE(line.kick_holder);
    EXPECT_EQ(line.evtchn, EventChannels::fifo);
    EXPECT_EQ(line.kick, KickChoice::remrd);
    EXPECT_EQ(line.paravirt, ParavirtChoice::force);
    EXPECT_EQ(line.watchdog_ms, 2000u);
    EXPECT_EQ(line.drop_starts, 2u);
    EXPECT_TRUE(line.compact);
    for (const auto& item : line.tests.items()) { // in the copy, not in the caller's text
        EXPECT_GE(item.data(), line.line);
        EXPECT_LT(item.data(), line.line + sizeof line.line);
    }
}

TEST(CommandLine, TakesEveryThreshold) {
    for (const std::uint64_t spins : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 63}) {
        const std::string value = std::to_string(spins);
        const Parsed parsed =
            parse("spin_threshold=" + value + " qspin_threshold=" + value + " byte_timeout=" + value + " end=1");
        ASSERT_TRUE(parsed.ok) << parsed.error.view();
        EXPECT_EQ(parsed.line->spin_threshold, spins);
        EXPECT_EQ(parsed.line->qspin_threshold, spins);
        EXPECT_EQ(parsed.line->byte_timeout, spins);
    }
}

TEST(CommandLine, TheLastMentionWins) {
    const Parsed parsed = parse("seed=1 tests=a,b compact=1 seed=2 tests=c compact=0 end=1");
    ASSERT_TRUE(parsed.ok);
    EXPECT_EQ(parsed.line->seed, 2u);
    EXPECT_EQ(strings(parsed.line->tests.items()), Strings{"c"});
    EXPECT_FALSE(parsed.line->compact);
}

TEST(CommandLine, NamesEveryChoice) {
    for (const char* const text : {"auto", "hypercall", "remrd", "ipi", "evtchn"}) {
        const Parsed parsed = parse("kick=" + std::string(text) + " end=1");
        ASSERT_TRUE(parsed.ok);
        EXPECT_EQ(name(parsed.line->kick), text);
    }
    for (const char* const text : {"off", "flags", "bitmap"}) {
        const Parsed parsed = parse("directed_yield=" + std::string(text) + " end=1");
        ASSERT_TRUE(parsed.ok);
        EXPECT_EQ(name(parsed.line->directed_yield), text);
    }
    for (const char* const text : {"pause", "lfence", "none"}) {
        const Parsed parsed = parse("relax=" + std::string(text) + " end=1");
        ASSERT_TRUE(parsed.ok);
        EXPECT_EQ(name(parsed.line->relax), text);
    }
    for (const char* const text : {"auto", "off", "force"}) {
        const Parsed parsed = parse("pv=" + std::string(text) + " end=1");
        ASSERT_TRUE(parsed.ok);
        EXPECT_EQ(name(parsed.line->paravirt), text);
    }
}

TEST(CommandLine, AnErrorNamesKeyAndValue) {
    EXPECT_EQ(error_of("seed=abc"), "seed=abc: must be a number from 0 to 18446744073709551615");
    EXPECT_EQ(error_of("seed="), "seed=: must be a number from 0 to 18446744073709551615");
    EXPECT_EQ(error_of("seed=0x"), "seed=0x: must be a number from 0 to 18446744073709551615");
    EXPECT_EQ(error_of("seed=-1"), "seed=-1: must be a number from 0 to 18446744073709551615");
    EXPECT_EQ(error_of("seed=18446744073709551616"),
              "seed=18446744073709551616: must be a number from 0 to 18446744073709551615");
    EXPECT_EQ(error_of("seed=18446744073709551615"), "no error");
    EXPECT_EQ(error_of("seed=0x10000000000000000"),
              "seed=0x10000000000000000: must be a number from 0 to 18446744073709551615");
    EXPECT_EQ(error_of("repeat=0"), "repeat=0: must be a number from 1 to 1000000");
    EXPECT_EQ(error_of("duration_ms=0"), "duration_ms=0: must be a number from 1 to 3600000");
    EXPECT_EQ(error_of("duration_ms=4294967297"), "duration_ms=4294967297: must be a number from 1 to 3600000");
    EXPECT_EQ(error_of("bench_cpus=65"), "bench_cpus=65: must be a number from 2 to 64");
    EXPECT_EQ(error_of("pairs=0"), "pairs=0: must be a number from 1 to 1000000000");
    EXPECT_EQ(error_of("pairs=many"), "pairs=many: must be a number from 1 to 1000000000");
    EXPECT_EQ(error_of("jobs=0"), "jobs=0: must be a number from 1 to 1000000000");
    EXPECT_EQ(error_of("load=huge"), "load=huge: must be one of light|moderate|heavy|all");
    EXPECT_EQ(error_of("load="), "load=: must be one of light|moderate|heavy|all");
    EXPECT_EQ(error_of("limit_ms=0"), "limit_ms=0: must be a number from 1 to 3600000");
    EXPECT_EQ(error_of("limit_ms=3600001"), "limit_ms=3600001: must be a number from 1 to 3600000");
    EXPECT_EQ(error_of("watchdog_ms=9"), "watchdog_ms=9: must be a number from 10 to 3600000");
    EXPECT_EQ(error_of("compact=2"), "compact=2: must be a number from 0 to 1");
    EXPECT_EQ(error_of("marker=2"), "marker=2: must be a number from 0 to 1");
    EXPECT_EQ(error_of("end=2"), "end=2: must be a number from 1 to 1");
    EXPECT_EQ(error_of("kick=foo"), "kick=foo: must be one of auto|hypercall|remrd|ipi|evtchn");
    EXPECT_EQ(error_of("kick="), "kick=: must be one of auto|hypercall|remrd|ipi|evtchn");
    EXPECT_EQ(error_of("pv=on"), "pv=on: must be one of auto|off|force");
    EXPECT_EQ(error_of("stealing=yes"), "stealing=yes: must be one of off|entry|on");
    EXPECT_EQ(error_of("kick_holder=1"), "kick_holder=1: must be one of off|on");
    EXPECT_EQ(error_of("wait_early=always"), "wait_early=always: must be one of off|state|preempted");
    EXPECT_EQ(error_of("seed"), "seed: needs a value");
    EXPECT_EQ(error_of("list=1"), "list=1: takes no value");
    EXPECT_EQ(error_of("tests="), "tests=: has an empty pattern; write NAME[,NAME]");
    EXPECT_EQ(error_of("tests=a,,b"), "tests=a,,b: has an empty pattern; write NAME[,NAME]");
    EXPECT_EQ(error_of("tests=a,"), "tests=a,: has an empty pattern; write NAME[,NAME]");
    // The first error is the one that is reported.
    EXPECT_EQ(error_of("seed=x kick=y"), "seed=x: must be a number from 0 to 18446744073709551615");
}

TEST(CommandLine, AnUnknownKeyNamesTheNearest) {
    EXPECT_EQ(error_of("test=a"), "test=a: unknown key \"test\"; did you mean tests?");
    EXPECT_EQ(error_of("lock=tas"), "lock=tas: unknown key \"lock\"; did you mean locks?");
    EXPECT_EQ(error_of("spin_treshold=3"),
              "spin_treshold=3: unknown key \"spin_treshold\"; did you mean spin_threshold?");
    EXPECT_EQ(error_of("lsit"), "lsit: unknown key \"lsit\"; did you mean list?");
    EXPECT_EQ(
        error_of("colour=red"),
        "colour=red: unknown key; known: tests skip locks list monitor seed duration_ms bench_cpus pairs jobs load "
        "limit_ms repeat "
        "spin_threshold "
        "qspin_threshold byte_timeout relax directed_yield wait_early stealing kick_holder kick pv evtchn "
        "watchdog_ms "
        "soak linger_ms sync nmis drop_starts compact end marker");
    // A word in the middle that looks like a path did not come from a loader.
    EXPECT_TRUE(error_of("seed=1 /boot/image").starts_with("/boot/image: unknown key"));
    EXPECT_TRUE(error_of(std::string(300, 'x')).starts_with(std::string(48, 'x') + ": unknown key"));
    EXPECT_TRUE(error_of("=").starts_with("=: unknown key"));
}

TEST(CommandLine, AtMost32PatternsAList) {
    std::string text = "tests=t0";
    for (int i = 1; i < 32; ++i)
        text += ",t" + std::to_string(i);
    EXPECT_EQ(error_of(text), "no error");
    EXPECT_EQ(error_of(text + ",t32"), "tests=: has more than 32 patterns, the first too many is t32; use * or ?");
}

TEST(CommandLine, EchoesTheWordsOfLoaders) {
    const Parsed parsed =
        parse("/boot/spinkick.elf acpi=off seed=3 noapic console=hvc0 end=1 virtio_mmio.device=512@0xfeb00000:5");
    ASSERT_TRUE(parsed.ok) << parsed.error.view();
    EXPECT_EQ(parsed.line->seed, 3u);
    EXPECT_EQ(strings(parsed.line->ignored.items()), (Strings{"/boot/spinkick.elf", "acpi=off", "noapic",
                                                              "console=hvc0", "virtio_mmio.device=512@0xfeb00000:5"}));
    EXPECT_TRUE(parse("(hd0,1)/spinkick.elf end=1").ok);

    std::string many;
    for (int i = 0; i < 40; ++i)
        many += "virtio_mmio.device=" + std::to_string(i) + " ";
    const Parsed crowd = parse(many + "end=1");
    ASSERT_TRUE(crowd.ok);
    EXPECT_EQ(crowd.line->ignored.items().size(), 16u);
    EXPECT_EQ(crowd.line->ignored_more, 24u);
}

TEST(CommandLine, ACutAtAnyByteIsAnError) {
    const std::string whole =
        "tests=lock.*,smp.* seed=12345 virtio_mmio.device=512@0xfeb00000:5 kick=hypercall pv=off end=1";
    ASSERT_TRUE(parse(whole).ok);
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const Parsed parsed = parse(std::string_view(whole).substr(0, size));
        ASSERT_FALSE(parsed.ok) << size;
        EXPECT_TRUE(parsed.error.view().starts_with("command line was cut: no end=1 in " + std::to_string(size)))
            << parsed.error.view();
        EXPECT_TRUE(parsed.error.view().ends_with("add marker=0)")) << parsed.error.view();
    }
}

TEST(CommandLine, NothingOfOursMayStandBehindTheMarker) {
    EXPECT_EQ(std::string(parse("end=1 seed=2").error.view()),
              "seed=2: stands behind end=1, which must be the last word");
    EXPECT_EQ(std::string(parse("end=1 end=1").error.view()),
              "end=1: stands behind end=1, which must be the last word");
    EXPECT_TRUE(parse("end=1 acpi=off").ok);
}

TEST(CommandLine, TheLongestLineIsReadAndOneMoreIsRefused) {
    std::string text = "tests=" + std::string(CommandLine::kMostBytes - 12, 'a') + " end=1";
    ASSERT_EQ(text.size(), CommandLine::kMostBytes);
    EXPECT_TRUE(parse(text).ok);
    EXPECT_EQ(std::string(parse(text + " ").error.view()),
              "command line of 4096 characters: at most 4095 are read; shorten it");
}

TEST(CommandLine, SurvivesAnyBytes) {
    std::mt19937 random(7);
    const std::string seedling = "tests=a,b locks=x seed=1 list kick=ipi pv=off compact=1 marker=0 end=1";
    for (int round = 0; round < 20000; ++round) {
        std::string text = seedling;
        const auto changes = random() % 6;
        for (unsigned i = 0; i < changes; ++i)
            text[random() % text.size()] = static_cast<char>(random() & 0xff);
        const Parsed parsed = parse(text);
        EXPECT_EQ(parsed.line->view(), text);
    }
}

TEST(Glob, MatchesAsTheShellDoes) {
    EXPECT_TRUE(glob_match("", ""));
    EXPECT_FALSE(glob_match("", "a"));
    EXPECT_TRUE(glob_match("*", ""));
    EXPECT_TRUE(glob_match("***", "abc"));
    EXPECT_FALSE(glob_match("?", ""));
    EXPECT_TRUE(glob_match("?", "a"));
    EXPECT_FALSE(glob_match("?", "ab"));
    EXPECT_TRUE(glob_match("lock.*", "lock.mutual_exclusion/tas/native"));
    EXPECT_TRUE(glob_match("*/pv-*/kvm", "lock.try_lock/pv-queued/kvm"));
    EXPECT_FALSE(glob_match("*/pv-*/kvm", "lock.try_lock/pv-queued/xen"));
    EXPECT_TRUE(glob_match("a*b*c", "aXXbYYbZc"));
    EXPECT_FALSE(glob_match("a*b*c", "aXXbYYbZ"));
    EXPECT_FALSE(glob_match("abc", "ab"));
    EXPECT_TRUE(glob_match("*ab", "aab"));
    static_assert(glob_match("s?i*", "spinkick"));
}

/// The definition, without any thought of speed.
bool by_definition(std::string_view pattern, std::string_view text) {
    if (pattern.empty())
        return text.empty();
    if (pattern[0] == '*')
        return by_definition(pattern.substr(1), text) || (!text.empty() && by_definition(pattern, text.substr(1)));
    return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
           by_definition(pattern.substr(1), text.substr(1));
}

TEST(Glob, AgreesWithItsDefinition) {
    const auto words = [](std::string_view letters, unsigned longest) {
        std::vector<std::string> all{""};
        for (std::size_t from = 0, length = 0; length < longest; ++length) {
            const std::size_t to = all.size();
            for (; from < to; ++from)
                for (const char c : letters)
                    all.push_back(all[from] + c);
        }
        return all;
    };
    for (const auto& pattern : words("ab*?", 5))
        for (const auto& text : words("ab", 5))
            ASSERT_EQ(glob_match(pattern, text), by_definition(pattern, text)) << pattern << " on " << text;
}

TEST(Glob, ManyStarsEndInTime) {
    std::string pattern;
    for (int i = 0; i < 200; ++i)
        pattern += "*a";
    EXPECT_FALSE(glob_match(pattern + "b", std::string(2000, 'a')));
}

} // namespace
} // namespace spinkick::test
