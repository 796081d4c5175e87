// SPDX-License-Identifier: BSD-2-Clause
#include "tools/summary.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "tools/bench_table.hpp"
#include "tools/event_table.hpp"
#include "tools/io_table.hpp"
#include "tools/jobs_table.hpp"
#include "tools/micro_table.hpp"
#include "tools/mixed_table.hpp"
#include "tools/record.hpp"
#include "tools/steal.hpp"
#include "tools/text.hpp"
#include "tools/units.hpp"
#include "tools/waitearly_table.hpp"

namespace spinkick::report {
namespace {

constexpr std::size_t kWidth = 110;
constexpr std::size_t kLabel = 12;

/// "label       text", broken at blanks, continued under the text.
std::string labelled(std::string_view label, std::string_view text) {
    std::string out = fmt::format("{:<{}}", label, kLabel);
    std::size_t column = kLabel;
    bool first = true;
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find(' '));
        text.remove_prefix(std::min(text.size(), word.size() + 1));
        if (!first && column + 1 + word.size() > kWidth) {
            out += "\n" + std::string(kLabel, ' ');
            column = kLabel;
            first = true;
        }
        out += first ? "" : " ";
        column += word.size() + (first ? 0 : 1);
        out += word;
        first = false;
    }
    return out + "\n";
}

class Painter {
  public:
    explicit Painter(Colour colour) : on_(colour == Colour::on) {}
    [[nodiscard]] std::string operator()(Word word, std::string_view text) const {
        switch (word) {
        case Word::PASS:
            return paint("32", text);
        case Word::SKIP:
            return paint("33", text);
        case Word::FAIL:
        case Word::ERROR:
        case Word::CRASH:
        case Word::HANG:
            break;
        }
        return paint("1;31", text);
    }
    [[nodiscard]] std::string warning(std::string_view text) const { return paint("33", text); }

  private:
    [[nodiscard]] std::string paint(std::string_view code, std::string_view text) const {
        return on_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string{text};
    }
    bool on_;
};

std::string plural(std::uint64_t count, std::string_view thing) {
    return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

/// "name at 0x40000000, name at 0x40000100"
std::string hypervisors_of(const Json& context) {
    std::string text;
    const auto list = context.find("hypervisors");
    if (list == context.end() || !list->is_array() || list->empty())
        return "no hypervisor signature in CPUID";
    for (const Json& hypervisor : *list) {
        if (!hypervisor.is_object())
            continue;
        text += fmt::format("{}{}", text.empty() ? "" : ", ", printable(text_in(hypervisor, "name")));
        if (const auto base = number_in(hypervisor, "base"))
            text += fmt::format(" at {:#x}", *base);
    }
    if (const std::string xen = text_in(context, "xen_version"); !xen.empty())
        text += fmt::format(", Xen {}", printable(xen));
    return text;
}

std::string backends_of(const Json& context) {
    std::string text;
    const auto backends = context.find("backends");
    if (backends == context.end() || !backends->is_object())
        return text;
    const auto kick = context.find("kick");
    for (const auto& [name, state] : backends->items()) {
        if (!state.is_string())
            continue;
        text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", printable(name),
                            printable(state.get_ref<const std::string&>()));
        if (kick != context.end() && kick->is_object())
            if (const std::string transport = text_in(*kick, name.c_str()); !transport.empty())
                text += fmt::format(" (kick by {})", printable(transport));
    }
    return text;
}

/// What the runner knows of the host: "kernel 6.1.0, halt_poll_ns 200000".
std::string host_of(const Json& context) {
    std::string out;
    const auto facts = context.find("host");
    if (facts == context.end() || !facts->is_object())
        return out;
    for (const auto& [name, value] : facts->items())
        if (value.is_string())
            out +=
                fmt::format("{}{} {}", out.empty() ? "" : ", ", printable(name), printable(value.get<std::string>()));
    return out;
}

std::string context_block(const Json& context, std::string_view runs, const Painter& paint) {
    const auto field = [&context](const char* key) {
        const std::string text = printable(text_in(context, key));
        return text.empty() ? std::string{"?"} : text;
    };
    const auto number = [&context](const char* key) {
        const auto value = number_in(context, key);
        return value ? std::to_string(*value) : std::string{"?"};
    };
    std::string where = fmt::format("{}: {}; {} vCPUs", field("platform"), hypervisors_of(context), number("cpus"));
    if (const auto found = number_in(context, "cpus_found"); found && found != number_in(context, "cpus"))
        where += fmt::format(" (of {} found)", *found);
    if (const auto pcpus = number_in(context, "pcpus"))
        where += fmt::format(" on {} host CPUs", *pcpus);
    where += fmt::format("; {}{}; booted by {}", field("cpu_model"), runs, field("boot"));

    std::string out = labelled("ran on", where);
    std::string image = fmt::format("spinkick {}, preset {}, {}", field("version"), field("preset"), field("compiler"));
    if (const std::string hash = text_in(context, "image_sha256"); hash.size() >= 12)
        image += ", sha256 " + printable(hash.substr(0, 12)) + "...";
    out += labelled("image", image);
    const std::string backend = printable(text_in(context, "default_lock_backend"));
    out += labelled("lock", fmt::format("default {}{}{}: {}", field("default_lock"), backend.empty() ? "" : "/",
                                        backend, field("default_lock_reason")));
    if (const std::string backends = backends_of(context); !backends.empty())
        out += labelled("back ends", backends);
    if (const std::string host = host_of(context); !host.empty())
        out += labelled("host", host);
    std::string clock = fmt::format("{}, TSC {} kHz ({})", field("clock"), number("tsc_khz"), field("tsc_source"));
    out += labelled("clock", clock);
    out += labelled("settings", fmt::format("seed {}, spin threshold {}, watchdog {} ms", number("seed"),
                                            number("spin_threshold"), number("watchdog_ms")));
    if (text_in(context, "timing") == "emulated")
        out += paint.warning(
            labelled("times", "EMULATED: software interprets the guest's instructions, so durations say nothing "
                              "about hardware. Compare them only within this run."));
    return out;
}

/// Contexts that differ in more than the run they belong to.
std::string contexts_text(const Results& results, const Painter& paint) {
    std::vector<std::pair<Json, unsigned>> distinct;
    for (const Json& record : results.records) {
        if (!is_type(record, "context"))
            continue;
        Json context = record;
        // What changes from boot to boot on one machine does not make another configuration.
        for (const char* key : {"run", "vm", "seed", "tsc_khz", "command_line", "ids"})
            context.erase(key);
        const auto same = std::find_if(distinct.begin(), distinct.end(), [&context](const auto& known) {
            Json other = known.first;
            for (const char* key : {"run", "vm", "seed", "tsc_khz", "command_line", "ids"})
                other.erase(key);
            return other == context;
        });
        if (same == distinct.end())
            distinct.emplace_back(record, 1);
        else
            ++same->second;
    }
    std::string text;
    for (const auto& [context, count] : distinct)
        text += context_block(context, results.runs.size() > 1 ? fmt::format("; {}", plural(count, "run")) : "", paint);
    if (distinct.empty() && !results.runs.empty())
        text += labelled(
            "ran on", fmt::format("{}: the image wrote no context record", printable(results.runs.front().platform)));
    return text;
}

/// The runner has booted such a run again, and kept the last one: figures of a busy host must not pass for others.
std::string noise_text(const Results& results, const Painter& paint) {
    const auto worst = worst_steal(results.records);
    for (const Json& record : results.records) {
        const auto limit = is_type(record, "context") ? steal_limit_in(record) : std::nullopt;
        if (limit && worst && 100 * worst->part > *limit)
            return paint.warning(
                labelled("noisy", fmt::format("{}, above --steal-limit {:g}", text_of(*worst), *limit)));
    }
    return "";
}

std::string bringup_text(const Results& results) {
    std::uint64_t runs = 0;
    std::uint64_t cpus = 0;
    std::uint64_t longest = 0;
    std::uint64_t retries = 0;
    std::string missing;
    for (const Json& record : results.records) {
        if (!is_type(record, "bringup"))
            continue;
        ++runs;
        cpus = std::max(cpus, number_in(record, "cpus").value_or(0));
        longest = std::max(longest, number_in(record, "first_to_last_ns").value_or(0));
        retries += number_in(record, "retries").value_or(0);
        if (const auto value = record.find("missing"); value != record.end() && *value != 0 && !value->empty())
            missing += " " + printable(value->dump());
    }
    if (runs == 0)
        return "";
    std::string text = fmt::format("{} in {}", plural(cpus, "vCPU"), human_time(longest));
    if (retries != 0)
        text += fmt::format(", {}", retries == 1 ? "1 retry" : fmt::format("{} retries", retries));
    if (!missing.empty())
        text += ", missing:" + missing;
    return labelled("bring-up", text);
}

std::string stalls_text(const Results& results, const Painter& paint) {
    constexpr std::size_t kMostStalls = 16;
    std::string text;
    std::size_t shown = 0;
    for (const Json& record : results.records) {
        if (!is_type(record, "stall") || shown++ >= kMostStalls)
            continue;
        const auto hex = [&record](const char* key) {
            const auto value = number_in(record, key);
            return value ? fmt::format("{:#x}", *value) : printable(text_in(record, key));
        };
        const auto pcpu = number_in(record, "pcpu"); // seen from outside, below the image's hypervisor
        text +=
            fmt::format("{} {}: {} {} at {} ({}), {}", paint(Word::FAIL, "stall "), printable(text_in(record, "test")),
                        pcpu ? "pCPU" : "CPU", pcpu ? *pcpu : number_in(record, "cpu").value_or(0),
                        printable(text_in(record, "symbol")), hex("rip"), printable(text_in(record, "state")));
        text += record.contains("word") ? fmt::format(", lock word {}\n", hex("word")) : "\n";
        if (const std::string verdict = text_in(record, "verdict"); !verdict.empty())
            text += fmt::format("       {}\n", printable(verdict));
    }
    if (shown > kMostStalls)
        text += fmt::format("       {} more stalls in results.json\n", shown - kMostStalls);
    return text.empty() ? "" : text + "\n";
}

std::string suites_text(const Results& results) {
    std::map<std::string, Tally> suites;
    std::size_t width = 5;
    for (const TestResult& test : results.tests) {
        const std::string suite = printable(test.name.substr(0, test.name.find('.')));
        width = std::max(width, suite.size());
        suites[suite].add(test.status);
    }
    if (suites.empty())
        return "";
    std::string text = fmt::format("{:<{}} {:>6} {:>6} {:>6} {:>6} {:>8}\n", "suite", width, "pass", "fail", "error",
                                   "skip", "not run");
    for (const auto& [suite, tally] : suites)
        fmt::format_to(std::back_inserter(text), "{:<{}} {:>6} {:>6} {:>6} {:>6} {:>8}\n", suite, width, tally.pass,
                       tally.fail, tally.error, tally.skip, tally.not_run);
    return text + "\n";
}

/// Every test that failed, erred or did not run; the same trouble in several runs is one line.
std::string troubles_text(const Results& results, const Painter& paint) {
    constexpr std::size_t kMostNotRun = 5;
    std::string text;
    for (const Status status : {Status::fail, Status::error, Status::not_run}) {
        std::vector<std::pair<std::string, std::vector<RunId>>> lines;
        for (const TestResult& test : results.tests) {
            if (test.status != status)
                continue;
            std::string line = printable(test.name);
            if (!test.reason.empty())
                line += ": " + printable(test.reason);
            const auto known = std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.first == line; });
            if (known == lines.end())
                lines.push_back({line, {test.id}});
            else
                known->second.push_back(test.id);
        }
        const std::string_view label = status == Status::fail ? "FAIL" : status == Status::error ? "ERROR" : "not run";
        // Behind a crash everything is "not run"; the first few say where it began.
        const std::size_t shown = status == Status::not_run ? std::min(kMostNotRun, lines.size()) : lines.size();
        for (std::size_t i = 0; i < shown; ++i) {
            text += paint(Word::FAIL, fmt::format("{:<7}", label)) + " " + lines[i].first;
            const auto& ids = lines[i].second;
            if (ids.size() > 1)
                text += fmt::format(" ({} times, first in {})", ids.size(), text_of(ids.front()));
            else if (results.runs.size() > 1)
                text += fmt::format(" ({})", text_of(ids.front()));
            text += "\n";
        }
        if (shown < lines.size())
            text += fmt::format("        and {} more not run\n", lines.size() - shown);
    }
    return text.empty() ? "" : text + "\n";
}

std::string skips_text(const Results& results) {
    std::vector<std::pair<std::string, std::vector<std::string>>> facts;
    for (const TestResult& test : results.tests) {
        if (test.status != Status::skip)
            continue;
        const std::string fact = test.reason.empty() ? "no reason given" : printable(test.reason);
        auto known = std::find_if(facts.begin(), facts.end(), [&](const auto& f) { return f.first == fact; });
        if (known == facts.end())
            known = facts.insert(facts.end(), {fact, {}});
        known->second.push_back(printable(test.name));
    }
    std::string text;
    for (const auto& [fact, names] : facts) {
        text += labelled("skipped", fmt::format("{}: {}", names.size(), fact));
        std::set<std::string> unique(names.begin(), names.end());
        constexpr std::size_t kMostNames = 4;
        std::string list;
        std::size_t shown = 0;
        for (const std::string& name : unique) {
            if (shown++ == kMostNames)
                break;
            list += (list.empty() ? "" : " ") + name;
        }
        if (unique.size() > kMostNames)
            list += fmt::format(" and {} more", unique.size() - kMostNames);
        text += labelled("", list);
    }
    return text.empty() ? "" : text + "\n";
}

std::string verdict_text(const Results& results, const Painter& paint) {
    std::string text;
    std::set<std::string> notes;
    for (const RunVerdict& run : results.runs)
        for (const std::string& note : run.notes)
            notes.insert(results.runs.size() == 1 || run.id == RunId{} ? note
                                                                       : fmt::format("{}: {}", text_of(run.id), note));
    for (const std::string& note : notes)
        text += labelled("note", printable(note));

    if (results.runs.size() > 1) {
        std::map<Word, unsigned> words;
        for (const RunVerdict& run : results.runs)
            ++words[run.word];
        std::string list;
        for (const auto& [word, count] : words)
            list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, name_of(word));
        text += labelled("runs", fmt::format("{}: {}", results.runs.size(), list));
    }

    const Tally tally = results.tally();
    const Word word = results.word();
    std::string counts = fmt::format("{} of {} passed", tally.pass, plural(tally.total(), "test"));
    const auto add = [&counts](std::uint32_t count, std::string_view what) {
        if (count != 0)
            counts += fmt::format(", {} {}", count, what);
    };
    add(tally.fail, "failed");
    add(tally.error, "erred");
    add(tally.skip, "skipped");
    add(tally.not_run, "not run");
    const bool emulated = std::any_of(results.runs.begin(), results.runs.end(),
                                      [](const RunVerdict& run) { return run.timing == "emulated"; });
    if (emulated)
        counts += "; times are emulated";
    const std::string reason = results.reason();
    return text + paint(word, name_of(word)) + ": " + (reason.empty() ? "" : printable(reason) + "; ") + counts + "\n";
}

/// A workload that ran, in its published layout. What that lacks is a problem for who asked for the table, not here.
template <auto kTableOf, auto kRows>
std::string workload_text(const Results& results) {
    auto table = kTableOf(results);
    table.problems.clear();
    return (table.*kRows).empty() ? "" : text_of(table) + "\n";
}

std::string workload_texts(const Results& results) {
    return workload_text<jobs_table, &JobsTable::blocks>(results) +
           workload_text<waitearly_table, &WaitEarlyTable::blocks>(results) +
           workload_text<io_table, &IoTable::blocks>(results) +
           workload_text<mixed_table, &MixedTable::blocks>(results) +
           workload_text<event_table, &EventTable::rows>(results);
}

} // namespace

std::string summary(const Results& results, Colour colour) {
    const Painter paint(colour);
    std::string text = contexts_text(results, paint) + bringup_text(results) + noise_text(results, paint) + "\n";
    if (const std::string tables = bench_tables(results.records); !tables.empty())
        text += tables + "\n";
    text += micro_overview(results) + workload_texts(results);
    return text + stalls_text(results, paint) + suites_text(results) + troubles_text(results, paint) +
           skips_text(results) + verdict_text(results, paint);
}

} // namespace spinkick::report
