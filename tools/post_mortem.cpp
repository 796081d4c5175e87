// SPDX-License-Identifier: BSD-2-Clause
#include "tools/post_mortem.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <span>
#include <thread>

#include <fmt/format.h>

#include "kernel/stress/stall_verdict.hpp"
#include "tools/collect.hpp"
#include "tools/record.hpp"
#include "tools/text.hpp"

namespace spinkick::report {
namespace {

using workers::StalledCpu;
using workers::StallKind;
using workers::StallVerdict;

constexpr std::chrono::seconds kBudget{5};
constexpr std::uint64_t kRflagsIF = 1 << 9;
constexpr unsigned kClassShift = 4; // an interrupt is taken if its class is above those of TPR and of what is served

/// The text up to `end`, which is taken off together with it.
std::string_view take_until(std::string_view& text, std::string_view end) {
    const std::size_t at = text.find(end);
    const std::string_view part = text.substr(0, at);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + end.size());
    return part;
}

/// The hexadecimal number behind `name`, wherever that stands in the text.
std::optional<std::uint64_t> hex_behind(std::string_view text, std::string_view name) {
    const std::size_t at = text.find(name);
    if (at == std::string_view::npos)
        return std::nullopt;
    text.remove_prefix(at + name.size());
    if (text.starts_with("0x"))
        text.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    return error == std::errc{} ? std::optional{value} : std::nullopt;
}

/// The highest number of a list such as "208 209(level)"; 0 for "(none)".
std::uint32_t highest_of(std::string_view list) {
    std::uint32_t highest = 0;
    while (!list.empty()) {
        const std::string_view word = take_until(list, " ");
        std::uint32_t vector = 0;
        if (std::from_chars(word.data(), word.data() + word.size(), vector).ec == std::errc{})
            highest = std::max(highest, vector);
    }
    return highest;
}

/// A halted CPU that would take an interrupt that waits for it.
bool has_lost_interrupt(const OutsideCpu& cpu) {
    return cpu.halted && (cpu.rflags & kRflagsIF) != 0 && cpu.apic &&
           cpu.apic->requested >> kClassShift > std::max(cpu.apic->tpr, cpu.apic->in_service) >> kClassShift;
}

/// Where a CPU is, as far as the image's symbols tell.
struct Where {
    std::optional<ImageSymbols::Place> place;
    std::optional<ImageSymbols::Place> caller; ///< of the function that does nothing but halt
};

Where where_is(const OutsideCpu& cpu, const ImageSymbols* symbols) {
    Where where;
    if (symbols == nullptr || !cpu.known)
        return where;
    where.place = symbols->function_at(cpu.rip);
    if (where.place && where.place->function.starts_with("sti_hlt") && cpu.top_of_stack)
        where.caller = symbols->function_at(*cpu.top_of_stack);
    return where;
}

/// A CPU that has nothing to do, or that waits for others to end their work.
bool is_idle(const OutsideCpu& cpu, const Where& where) {
    const auto& place = where.caller ? where.caller : where.place;
    return cpu.halted && place && !has_lost_interrupt(cpu) &&
           (place->function.ends_with("idle_loop") || place->function.ends_with("idle_unless"));
}

std::string state_of(const OutsideCpu& cpu) {
    return fmt::format("{}, IF {}", cpu.halted ? "halted" : "running", (cpu.rflags & kRflagsIF) != 0 ? 1 : 0);
}

std::string text_of(const ImageSymbols::Place& place) {
    return fmt::format("{}+0x{:x}", printable(place.function), place.offset);
}

std::string text_of(const Where& where, const OutsideCpu& cpu) {
    if (!where.place)
        return fmt::format("(outside the image, CPL {})", cpu.cpl);
    return text_of(*where.place) + (where.caller ? " < " + text_of(*where.caller) : "");
}

/// From what the registers of all vCPUs say together: nobody knows from outside who gets on, so nobody does.
StallVerdict judge(std::span<const OutsideCpu* const> stuck) {
    std::vector<StalledCpu> facts;
    for (const OutsideCpu* cpu : stuck) {
        StalledCpu fact;
        fact.cpu = CpuId{cpu->cpu};
        fact.answered = cpu->known;
        fact.halted = cpu->halted;
        fact.interrupt_requested = has_lost_interrupt(*cpu);
        fact.silent_for = seconds(1); // for a share of stolen time, which is not known either
        facts.push_back(fact);
    }
    return workers::judge_stall(facts);
}

std::string text_of(const StallVerdict& verdict) {
    const char* meaning = workers::meaning(verdict.kind);
    if (verdict.kind == StallKind::no_answer)
        meaning = "QEMU does not tell its registers";
    else if (verdict.kind == StallKind::lost_wake_up) // kicks are counted inside
        meaning = "it halts, and no interrupt that it would take waits for it: it was not kicked, or the kick is lost";
    else if (verdict.kind == StallKind::deadlock) // no cycle is known from outside
        meaning = "all of them run, and none comes to its end: for each other, or for nobody";
    return fmt::format("{}, CPU {}: {}", workers::name(verdict.kind), raw(verdict.cpu), meaning);
}

/// Runs one step; what it throws becomes a complaint. False then.
template <class Step>
bool attempt(std::vector<std::string>& complaints, Step step) {
    try {
        step();
        return true;
    } catch (const InputError& error) {
        complaints.emplace_back(error.what());
        return false;
    }
}

void ask(QmpClient& qemu, OutsideLook& look) {
    look.status = text_in(qemu.execute("query-status"), "status");
    static_cast<void>(qemu.execute("stop")); // registers of a CPU that runs are those of some time ago
    for (const Json& known : qemu.execute("query-cpus-fast")) {
        OutsideCpu cpu;
        cpu.cpu = static_cast<std::uint32_t>(number_in(known, "cpu-index").value_or(look.cpus.size()));
        look.cpus.push_back(cpu);
    }
    for (const OutsideCpu& seen : parse_registers(qemu.monitor("info registers -a"))) {
        const auto cpu = std::find_if(look.cpus.begin(), look.cpus.end(),
                                      [&seen](const OutsideCpu& one) { return one.cpu == seen.cpu; });
        if (cpu != look.cpus.end())
            *cpu = seen;
    }
    for (OutsideCpu& cpu : look.cpus) {
        cpu.apic = parse_lapic(qemu.monitor("info lapic", cpu.cpu));
        if (!cpu.known || !cpu.halted)
            continue;
        std::uint64_t top = 0;
        // A stack may be unmapped where a guest has gone astray: then nobody knows the caller.
        if (const auto bytes = qemu.memory(cpu.rsp, sizeof top, cpu.cpu); bytes.size() == sizeof top) {
            std::memcpy(&top, bytes.data(), sizeof top);
            cpu.top_of_stack = top;
        }
    }
}

void append(const std::filesystem::path& path, std::string text) {
    char last = '\n';
    if (std::ifstream log(path, std::ios::binary | std::ios::ate); log && log.tellg() > 0) {
        log.seekg(-1, std::ios::end);
        log.get(last);
    }
    if (last != '\n')
        text.insert(0, "\n"); // the guest was in the middle of a line
    std::ofstream log(path, std::ios::binary | std::ios::app);
    log << text << std::flush; // whole: somebody else may still write the guest's last bytes
    if (!log)
        throw InputError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
}

} // namespace

std::vector<OutsideCpu> parse_registers(std::string_view text) {
    constexpr std::string_view kStart = "CPU#";
    std::vector<OutsideCpu> cpus;
    take_until(text, kStart);
    while (!text.empty()) {
        const std::string_view part = take_until(text, kStart);
        OutsideCpu cpu;
        if (std::from_chars(part.data(), part.data() + part.size(), cpu.cpu).ec != std::errc{})
            continue;
        // A CPU in the firmware's modes has the shorter names.
        const auto rip =
            part.find("RIP=") != std::string_view::npos ? hex_behind(part, "RIP=") : hex_behind(part, "EIP=");
        const auto rflags =
            part.find("RFL=") != std::string_view::npos ? hex_behind(part, "RFL=") : hex_behind(part, "EFL=");
        const auto halted = hex_behind(part, "HLT=");
        if (!rip || !rflags || !halted)
            continue;
        cpu.known = true;
        cpu.rip = *rip;
        cpu.rsp = hex_behind(part, "RSP=").value_or(0);
        cpu.rflags = *rflags;
        cpu.cpl = static_cast<std::uint32_t>(hex_behind(part, "CPL=").value_or(0));
        cpu.halted = *halted != 0;
        cpus.push_back(cpu);
    }
    return cpus;
}

std::optional<OutsideApic> parse_lapic(std::string_view text) {
    OutsideApic apic;
    bool in_service = false, requested = false;
    const auto tpr = hex_behind(text, "TPR ");
    while (!text.empty()) {
        std::string_view line = take_until(text, "\n");
        const std::string_view name = take_until(line, "\t");
        if (name == "ISR") {
            apic.in_service = highest_of(line);
            in_service = true;
        } else if (name == "IRR") {
            apic.requested = highest_of(line);
            requested = true;
        }
    }
    if (!in_service || !requested || !tpr)
        return std::nullopt;
    apic.tpr = static_cast<std::uint32_t>(*tpr);
    return apic;
}

OutsideLook look_from_outside(const std::filesystem::path& socket, QmpClient::TimePoint deadline) {
    OutsideLook look;
    attempt(look.complaints, [&] {
        QmpClient qemu(socket, deadline);
        ask(qemu, look);
    });
    return look;
}

std::string dump_of(const OutsideLook& look, CpuView view, const ImageSymbols* symbols, std::string_view why,
                    std::string_view test) {
    const bool virtual_cpus = view == CpuView::vcpus;
    std::string text = fmt::format("# stall: {}: seen from outside, by QMP{}{}\n", why, test.empty() ? "" : ", test ",
                                   printable(test));
    if (!virtual_cpus)
        text += "#   registers are those of the CPUs below the hypervisor: each is in it, or in one of the vCPUs\n";
    std::vector<const OutsideCpu*> stuck;
    std::vector<Json> records;
    bool interrupts_on = false;
    for (const OutsideCpu& cpu : look.cpus) {
        const Where where = where_is(cpu, symbols);
        const bool idle = is_idle(cpu, where);
        const char* kind = virtual_cpus ? "cpu" : "pcpu";
        if (!cpu.known) {
            text += fmt::format("#   {} {}: no registers\n", kind, cpu.cpu);
        } else {
            text += fmt::format("#   {} {}: {}, RIP 0x{:x} {}, IF {}", kind, cpu.cpu,
                                cpu.halted ? (idle ? "idle" : "halted") : "running", cpu.rip, text_of(where, cpu),
                                (cpu.rflags & kRflagsIF) != 0 ? 1 : 0);
            text += cpu.apic ? fmt::format(", ISR 0x{:x}, IRR 0x{:x}, TPR 0x{:x}\n", cpu.apic->in_service,
                                           cpu.apic->requested, cpu.apic->tpr)
                             : ", no APIC state\n";
        }
        if (idle)
            continue;
        if (symbols == nullptr || !cpu.known || where.place)
            stuck.push_back(&cpu); // firmware, or a CPU that was never started, waits for nobody
        interrupts_on = interrupts_on || (cpu.rflags & kRflagsIF) != 0;
        if (cpu.known && (virtual_cpus || where.place)) {
            Json record{{"type", "stall"}};
            if (!test.empty())
                record["test"] = printable(test);
            record.update(Json{{"seen_from", "outside"},
                               {virtual_cpus ? "cpu" : "pcpu", cpu.cpu},
                               {"rip", fmt::format("0x{:x}", cpu.rip)},
                               {"symbol", text_of(where, cpu)},
                               {"state", state_of(cpu)}});
            records.push_back(std::move(record));
        }
    }
    for (const std::string& complaint : look.complaints)
        text += fmt::format("#   {}\n", printable(complaint));

    std::string verdict;
    if (!look.status.empty() && look.status != "running")
        verdict = look.status == "paused" ? "paused guest: somebody has stopped it and not let it go on"
                                          : fmt::format("none: QEMU's own state is {}", printable(look.status));
    else if (look.cpus.empty())
        verdict = "none: nothing is known about the CPUs";
    else if (!virtual_cpus)
        verdict = "none: which vCPU waits, and for what, is known to the hypervisor alone";
    else if (stuck.empty())
        verdict = "none: every CPU idles, or is not in the image's code";
    else
        verdict = text_of(judge(stuck));
    if (virtual_cpus && !stuck.empty() && !interrupts_on)
        text += "#   no CPU takes interrupts, so none could look from inside\n";
    text += fmt::format("# stall verdict: {}\n", verdict);
    if (!records.empty())
        records.back()["verdict"] = verdict;
    for (const Json& record : records)
        text += fmt::format("# json {}\n", record.dump());
    return text;
}

void post_mortem(const PostMortemOptions& options) {
    std::this_thread::sleep_for(std::chrono::seconds{options.after_s});
    OutsideLook look = look_from_outside(options.socket, std::chrono::steady_clock::now() + kBudget);
    std::optional<ImageSymbols> symbols;
    attempt(look.complaints, [&] { symbols.emplace(options.image); });
    std::string test;
    attempt(look.complaints, [&] {
        const Stream stream = read_logs({options.log});
        if (const auto running = stream.tests.find(stream.running); running != stream.tests.end())
            test = running->second.name;
    });
    append(options.log, dump_of(look, options.view, symbols ? &*symbols : nullptr,
                                fmt::format("no verdict within {} s", options.after_s), test));
}

} // namespace spinkick::report
