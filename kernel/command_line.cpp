// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/command_line.hpp"

#include <algorithm>
#include <limits>

namespace spinkick {
namespace {

using namespace std::string_view_literals;

/// Prints at most this much of a word in an error: the rest of the line must stay readable.
constexpr std::size_t kShown = 48;

int shown(std::string_view text) noexcept { return static_cast<int>(text.size() < kShown ? text.size() : kShown); }

struct Word {
    std::string_view whole;
    std::string_view key;
    std::string_view value;
    bool has_value = false;
};

Word split(std::string_view whole) noexcept {
    std::size_t i = 0;
    while (i < whole.size() && whole[i] != '=')
        ++i;
    const std::string_view key{whole.data(), i};
    if (i == whole.size())
        return {whole, key, {}, false};
    return {whole, key, {whole.data() + i + 1, whole.size() - i - 1}, true};
}

/// Takes the next word off the front of `rest`; empty at the end.
std::string_view next_word(std::string_view& rest) noexcept {
    const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
    std::size_t begin = 0;
    while (begin < rest.size() && blank(rest[begin]))
        ++begin;
    std::size_t end = begin;
    while (end < rest.size() && !blank(rest[end]))
        ++end;
    const std::string_view word{rest.data() + begin, end - begin};
    rest.remove_prefix(end);
    return word;
}

bool parse_number(std::string_view text, std::uint64_t& value) noexcept {
    unsigned base = 10;
    if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        text.remove_prefix(2);
    }
    if (text.empty())
        return false;
    std::uint64_t n = 0;
    for (const char c : text) {
        unsigned digit = base;
        if (c >= '0' && c <= '9')
            digit = static_cast<unsigned>(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = static_cast<unsigned>(c - 'a') + 10;
        else if (c >= 'A' && c <= 'F')
            digit = static_cast<unsigned>(c - 'A') + 10;
        if (digit >= base || n > (std::numeric_limits<std::uint64_t>::max() - digit) / base)
            return false;
        n = n * base + digit;
    }
    value = n;
    return true;
}

template <class T>
bool set_number(const Word& word, T& out, std::uint64_t least, std::uint64_t most, ErrorText& error) noexcept {
    std::uint64_t value = 0;
    if (!parse_number(word.value, value) || value < least || value > most) {
        error.set("%.*s=%.*s: must be a number from %llu to %llu", shown(word.key), word.key.data(), shown(word.value),
                  word.value.data(), static_cast<unsigned long long>(least), static_cast<unsigned long long>(most));
        return false;
    }
    out = static_cast<T>(value);
    return true;
}

bool set_flag(const Word& word, bool& out, ErrorText& error) noexcept {
    std::uint8_t value = 0;
    if (!set_number(word, value, 0, 1, error))
        return false;
    out = value == 1;
    return true;
}

/// The last mention of a key wins, as on other command lines, so that a runner's own words can be overridden.
bool set_globs(const Word& word, GlobList& out, ErrorText& error) noexcept {
    out.clear();
    std::string_view rest = word.value;
    for (bool more = true; more;) {
        std::size_t comma = 0;
        while (comma < rest.size() && rest[comma] != ',')
            ++comma;
        more = comma < rest.size();
        const std::string_view glob{rest.data(), comma};
        if (glob.empty()) {
            error.set("%.*s=%.*s: has an empty pattern; write NAME[,NAME]", shown(word.key), word.key.data(),
                      shown(word.value), word.value.data());
            return false;
        }
        if (!out.add(glob)) {
            error.set("%.*s=: has more than %zu patterns, the first too many is %.*s; use * or ?", shown(word.key),
                      word.key.data(), out.items().size(), shown(glob), glob.data());
            return false;
        }
        rest.remove_prefix(more ? comma + 1 : comma);
    }
    return true;
}

/// A time as a person writes it: 90, 90s, 8m, 8h.
bool set_seconds(const Word& word, std::uint64_t& out, std::uint64_t most, ErrorText& error) noexcept {
    auto digits = word.value;
    std::uint64_t unit = 1;
    if (!digits.empty()) {
        const char last = digits[digits.size() - 1];
        unit = last == 'h' ? 3600 : last == 'm' ? 60 : 1;
        if (last == 'h' || last == 'm' || last == 's')
            digits.remove_suffix(1);
    }
    std::uint64_t value = 0;
    if (!parse_number(digits, value) || value == 0 || value > most / unit) {
        error.set("%.*s=%.*s: must be a time such as 90s, 8m or 8h, up to %lluh", shown(word.key), word.key.data(),
                  shown(word.value), word.value.data(), static_cast<unsigned long long>(most / 3600));
        return false;
    }
    out = value * unit;
    return true;
}

template <class T>
struct Choice {
    std::string_view name;
    T value;
};

template <class T, std::size_t N>
bool set_choice(const Word& word, T& out, const std::array<Choice<T>, N>& choices, ErrorText& error) noexcept {
    for (const auto& choice : choices) {
        if (choice.name == word.value) {
            out = choice.value;
            return true;
        }
    }
    char storage[100];
    TextBuffer names(storage);
    for (const auto& choice : choices) {
        if (!names.empty())
            names.append('|');
        names.append(choice.name);
    }
    error.set("%.*s=%.*s: must be one of %s", shown(word.key), word.key.data(), shown(word.value), word.value.data(),
              names.c_str());
    return false;
}

constexpr std::array kWaitEarly{
    Choice<sync::WaitEarly>{"off"sv, sync::WaitEarly::off},
    Choice<sync::WaitEarly>{"state"sv, sync::WaitEarly::state},
    Choice<sync::WaitEarly>{"preempted"sv, sync::WaitEarly::preempted},
};
constexpr std::array kStealing{
    Choice<sync::Stealing>{"off"sv, sync::Stealing::off},
    Choice<sync::Stealing>{"entry"sv, sync::Stealing::entry},
    Choice<sync::Stealing>{"on"sv, sync::Stealing::on},
};
constexpr std::array kRelax{
    Choice<sync::RelaxHint>{"pause"sv, sync::RelaxHint::pause},
    Choice<sync::RelaxHint>{"lfence"sv, sync::RelaxHint::lfence},
    Choice<sync::RelaxHint>{"none"sv, sync::RelaxHint::none},
};
constexpr std::array kDirectedYield{
    Choice<sync::YieldMethod>{"off"sv, sync::YieldMethod::off},
    Choice<sync::YieldMethod>{"flags"sv, sync::YieldMethod::flags},
    Choice<sync::YieldMethod>{"bitmap"sv, sync::YieldMethod::bitmap},
};
constexpr std::array kOffOn{
    Choice<bool>{"off"sv, false},
    Choice<bool>{"on"sv, true},
};
constexpr std::array kLoad{
    Choice<JobLoad>{"light"sv, JobLoad::light},
    Choice<JobLoad>{"moderate"sv, JobLoad::moderate},
    Choice<JobLoad>{"heavy"sv, JobLoad::heavy},
    Choice<JobLoad>{"all"sv, JobLoad::all},
};
constexpr std::array kKick{
    Choice<KickChoice>{"auto"sv, KickChoice::automatic}, Choice<KickChoice>{"hypercall"sv, KickChoice::hypercall},
    Choice<KickChoice>{"remrd"sv, KickChoice::remrd},    Choice<KickChoice>{"ipi"sv, KickChoice::ipi},
    Choice<KickChoice>{"evtchn"sv, KickChoice::evtchn},
};
constexpr std::array kEventChannels{
    Choice<EventChannels>{"2l"sv, EventChannels::two_level},
    Choice<EventChannels>{"fifo"sv, EventChannels::fifo},
};
constexpr std::array kParavirt{
    Choice<ParavirtChoice>{"auto"sv, ParavirtChoice::automatic},
    Choice<ParavirtChoice>{"off"sv, ParavirtChoice::off},
    Choice<ParavirtChoice>{"force"sv, ParavirtChoice::force},
};

/// The marks that bound the line; seen before any word is judged, since a cut line is the cause of its last bad word.
struct Marks {
    bool end = false;      ///< end=1 is there
    bool required = true;  ///< marker=0 is not
    bool past_end = false; ///< the parser is behind end=1
};

struct Key {
    std::string_view name;
    bool takes_value;
    bool (*apply)(const Word&, CommandLine&, ErrorText&) noexcept;
};

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kOneHourMs = 3'600'000;
constexpr std::uint64_t kOneWeek = 7 * 24 * 3600;

constexpr std::array kKeys{
    Key{"tests"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept { return set_globs(w, out.tests, e); }},
    Key{"skip"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept { return set_globs(w, out.skip, e); }},
    Key{"locks"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept { return set_globs(w, out.locks, e); }},
    Key{"list"sv, false,
        [](const Word&, CommandLine& out, ErrorText&) noexcept {
            out.list = true;
            return true;
        }},
    Key{"monitor"sv, false,
        [](const Word&, CommandLine& out, ErrorText&) noexcept {
            out.monitor = true;
            return true;
        }},
    Key{"seed"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept { return set_number(w, out.seed, 0, kAny, e); }},
    Key{"duration_ms"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_number(w, out.duration_ms, 1, kOneHourMs, e);
        }},
    Key{"bench_cpus"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_number(w, out.bench_cpus, 2, kMostBenchCpus, e);
        }},
    Key{"pairs"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_number(w, out.pairs, 1, 1'000'000'000, e);
        }},
    Key{"jobs"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_number(w, out.jobs, 1, 1'000'000'000, e);
        }},
    Key{"load"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept { return set_choice(w, out.load, kLoad, e); }},
    Key{"limit_ms"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_number(w, out.limit_ms, 1, kOneHourMs, e);
        }},
    Key{"repeat"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_number(w, out.repeat, 1, 1'000'000, e);
        }},
    Key{"spin_threshold"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_number(w, out.spin_threshold, 0, kAny, e);
        }},
    Key{"qspin_threshold"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_number(w, out.qspin_threshold, 0, kAny, e);
        }},
    Key{"byte_timeout"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_number(w, out.byte_timeout, 0, kAny, e);
        }},
    Key{"relax"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept { return set_choice(w, out.relax, kRelax, e); }},
    Key{"directed_yield"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_choice(w, out.directed_yield, kDirectedYield, e);
        }},
    Key{"wait_early"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_choice(w, out.wait_early, kWaitEarly, e);
        }},
    Key{"stealing"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_choice(w, out.stealing, kStealing, e);
        }},
    Key{"kick_holder"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_choice(w, out.kick_holder, kOffOn, e);
        }},
    Key{"kick"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept { return set_choice(w, out.kick, kKick, e); }},
    Key{"pv"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_choice(w, out.paravirt, kParavirt, e);
        }},
    Key{"evtchn"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_choice(w, out.evtchn, kEventChannels, e);
        }},
    Key{"watchdog_ms"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_number(w, out.watchdog_ms, 10, kOneHourMs, e);
        }},
    Key{"soak"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept { return set_seconds(w, out.soak_s, kOneWeek, e); }},
    Key{"linger_ms"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept {
            return set_number(w, out.linger_ms, 0, kOneHourMs, e);
        }},
    Key{"sync"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept { return set_choice(w, out.sync, kOffOn, e); }},
    Key{"nmis"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept { return set_choice(w, out.nmis, kOffOn, e); }},
    Key{"drop_starts"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept { return set_number(w, out.drop_starts, 0, 9, e); }},
    Key{"compact"sv, true,
        [](const Word& w, CommandLine& out, ErrorText& e) noexcept { return set_flag(w, out.compact, e); }},
    // The two marks have acted before: here only their values are judged.
    Key{"end"sv, true,
        [](const Word& w, CommandLine&, ErrorText& e) noexcept {
            std::uint8_t ignored = 0;
            return set_number(w, ignored, 1, 1, e);
        }},
    Key{"marker"sv, true,
        [](const Word& w, CommandLine&, ErrorText& e) noexcept {
            bool ignored = false;
            return set_flag(w, ignored, e);
        }},
};

/// Words that come from a loader and not from a person: QEMU's microvm and Firecracker describe their virtio devices,
/// Xen passes on what it was told about ACPI and the APIC, GRUB and QEMU put the image's path in front.
constexpr std::array kLoaderKeys{"virtio_mmio.device"sv, "acpi"sv, "console"sv, "BOOT_IMAGE"sv};

bool is_loader_word(const Word& word, bool first) noexcept {
    if (first && (word.whole[0] == '/' || word.whole[0] == '('))
        return true;
    if (word.whole == "noapic"sv)
        return true;
    return word.has_value && std::find(kLoaderKeys.begin(), kLoaderKeys.end(), word.key) != kLoaderKeys.end();
}

/// Levenshtein's distance: single characters inserted, removed or replaced.
std::size_t distance(std::string_view a, std::string_view b) noexcept {
    constexpr std::size_t kLongest = 24; // longer than any key plus its typing errors
    if (a.size() > kLongest || b.size() > kLongest)
        return kLongest;
    std::size_t row[kLongest + 1];
    for (std::size_t j = 0; j <= b.size(); ++j)
        row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0u : 1u);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

void report_unknown(const Word& word, ErrorText& error) noexcept {
    const Key* nearest = nullptr;
    std::size_t least = 3; // more typing errors than two make another word
    for (const Key& key : kKeys) {
        const std::size_t d = distance(word.key, key.name);
        if (d < least && d < key.name.size()) {
            least = d;
            nearest = &key;
        }
    }
    if (nearest != nullptr) {
        error.set("%.*s: unknown key \"%.*s\"; did you mean %.*s?", shown(word.whole), word.whole.data(),
                  shown(word.key), word.key.data(), shown(nearest->name), nearest->name.data());
        return;
    }
    char storage[280];
    TextBuffer names(storage);
    for (const Key& key : kKeys) {
        if (!names.empty())
            names.append(' ');
        names.append(key.name);
    }
    error.set("%.*s: unknown key; known: %s", shown(word.whole), word.whole.data(), names.c_str());
}

bool apply(const Word& word, bool first, Marks& marks, CommandLine& out, ErrorText& error) noexcept {
    if (is_loader_word(word, first)) {
        if (!out.ignored.add(word.whole))
            ++out.ignored_more;
        return true;
    }
    const auto* const key = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& k) { return k.name == word.key; });
    if (key == kKeys.end()) {
        report_unknown(word, error);
        return false;
    }
    if (key->takes_value != word.has_value) {
        error.set(key->takes_value ? "%.*s: needs a value" : "%.*s: takes no value", shown(word.whole),
                  word.whole.data());
        return false;
    }
    if (marks.past_end) {
        error.set("%.*s: stands behind end=1, which must be the last word", shown(word.whole), word.whole.data());
        return false;
    }
    marks.past_end = word.whole == "end=1"sv;
    return key->apply(word, out, error);
}

/// Calls `visit(word, is_first)` for each word until it returns false; true if all were visited.
template <class Visit>
bool for_each_word(std::string_view line, Visit visit) noexcept {
    bool first = true;
    for (std::string_view whole = next_word(line); !whole.empty(); whole = next_word(line)) {
        if (!visit(split(whole), first))
            return false;
        first = false;
    }
    return true;
}

} // namespace

bool parse_command_line(std::string_view line, CommandLine& out, ErrorText& error) noexcept {
    if (line.size() > CommandLine::kMostBytes) {
        error.set("command line of %zu characters: at most %zu are read; shorten it", line.size(),
                  CommandLine::kMostBytes);
        return false;
    }
    std::copy(line.begin(), line.end(), out.line);
    out.line_size = line.size();
    out.line[out.line_size] = '\0';

    Marks marks;
    std::string_view last;
    (void)for_each_word(out.view(), [&](const Word& word, bool) {
        marks.end = marks.end || word.whole == "end=1"sv;
        marks.required = marks.required && word.whole != "marker=0"sv;
        last = word.whole;
        return true;
    });
    if (marks.required && !marks.end) {
        error.set(
            "command line was cut: no end=1 in %zu characters, last word \"%.*s\"; Xen passes 1023 characters, QEMU "
            "and GRUB about 2000: shorten it (typed by hand: add marker=0)",
            line.size(), static_cast<int>(last.size() < 24 ? last.size() : 24), last.data());
        return false;
    }
    return for_each_word(out.view(),
                         [&](const Word& word, bool first) { return apply(word, first, marks, out, error); });
}

void apply_tuning(const CommandLine& line) noexcept {
    // relaxed: each stands for itself, and a waiter that sees an old one a moment longer is as before
    sync::tuning.spin_threshold.store(line.spin_threshold, std::memory_order_relaxed);
    sync::tuning.qspin_threshold.store(line.qspin_threshold, std::memory_order_relaxed);
    sync::tuning.byte_timeout.store(line.byte_timeout, std::memory_order_relaxed);
    sync::tuning.relax_hint.store(line.relax, std::memory_order_relaxed);
    sync::tuning.directed_yield.store(line.directed_yield, std::memory_order_relaxed);
    sync::tuning.wait_early.store(line.wait_early, std::memory_order_relaxed);
    sync::tuning.stealing.store(line.stealing, std::memory_order_relaxed);
    sync::tuning.kick_holder.store(line.kick_holder, std::memory_order_relaxed);
}

namespace {
template <class T, std::size_t N>
std::string_view name_of(T value, const std::array<Choice<T>, N>& choices) noexcept {
    for (const auto& choice : choices)
        if (choice.value == value)
            return choice.name;
    return "?"sv;
}
} // namespace

std::string_view name(KickChoice choice) noexcept { return name_of(choice, kKick); }
std::string_view name(ParavirtChoice choice) noexcept { return name_of(choice, kParavirt); }
std::string_view name(EventChannels form) noexcept { return name_of(form, kEventChannels); }
std::string_view name(sync::RelaxHint hint) noexcept { return name_of(hint, kRelax); }
std::string_view name(sync::YieldMethod method) noexcept { return name_of(method, kDirectedYield); }

} // namespace spinkick
