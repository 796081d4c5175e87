// SPDX-License-Identifier: BSD-2-Clause
#include "tools/trace.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tools/trace_record.hpp"

namespace spinkick::report {
namespace {

/// The format counts in microseconds, with fractions.
double us(std::uint64_t ns) { return static_cast<double>(ns) / 1000.0; }

class Writer {
  public:
    explicit Writer(const TracedRun& process, int pid, int& next_flow, Json& out)
        : process_(process), pid_(pid), next_flow_(next_flow), out_(out) {}

    void write() {
        metadata("process_name", std::nullopt, process_.name());
        for (const auto& track : process_.tracks) {
            metadata("thread_name", track.cpu, fmt::format("CPU {}", track.cpu));
            slices(track);
            for (const auto& [ns, steal] : track.steal)
                out_.push_back({{"name", fmt::format("steal CPU {}", track.cpu)},
                                {"ph", "C"},
                                {"pid", pid_},
                                {"tid", track.cpu},
                                {"ts", us(ns)},
                                {"args", {{"steal_ns", steal}}}});
        }
        handoffs();
        kicks();
    }

  private:
    void metadata(const char* name, std::optional<std::uint64_t> cpu, const std::string& value) {
        Json event = {{"name", name}, {"ph", "M"}, {"pid", pid_}, {"tid", cpu.value_or(0)}, {"ts", 0}};
        event["args"] = {{"name", value}};
        out_.push_back(std::move(event));
    }

    void slice(const TraceTrack& track, const std::string& name, std::uint64_t begin, std::uint64_t end, Json args) {
        out_.push_back({{"name", name},
                        {"cat", "lock"},
                        {"ph", "X"},
                        {"pid", pid_},
                        {"tid", track.cpu},
                        {"ts", us(begin)},
                        {"dur", us(end > begin ? end - begin : 0)},
                        {"args", std::move(args)}});
    }

    /// spin: from a call, or from a wake-up, to the next sleep or to the lock. A slice whose begin or end the ring did
    /// not keep is not drawn: nobody knows how long it was.
    void slices(const TraceTrack& track) {
        std::optional<std::uint64_t> spin, halt, hold, kick;
        Json queued = Json::object();
        for (const auto& event : track.events) {
            const auto lock = [&] { return Json{{"lock", fmt::format("{:#x}", event.argument)}}; };
            if (event.kind == "wants") {
                spin = event.ns;
                queued = Json::object();
            } else if (event.kind == "queued") {
                queued = {{"behind_cpu", event.argument}};
            } else if (event.kind == "halts") {
                if (spin)
                    slice(track, "spin", *spin, event.ns, queued);
                spin.reset();
                halt = event.ns;
            } else if (event.kind == "wakes") {
                if (halt)
                    slice(track, "halt", *halt, event.ns, Json::object());
                halt.reset();
                spin = event.ns;
            } else if (event.kind == "acquired") {
                if (spin)
                    slice(track, "spin", *spin, event.ns, queued);
                spin.reset();
                hold = event.ns;
            } else if (event.kind == "releases") {
                if (hold)
                    slice(track, "hold", *hold, event.ns, lock());
                hold.reset();
            } else if (event.kind == "kicks") {
                kick = event.ns;
            } else if (event.kind == "kicked") {
                if (kick)
                    slice(track, "kick", *kick, event.ns, {{"cpu", event.argument}});
                kick.reset();
            }
        }
    }

    void arrow(const char* name, std::uint64_t from_cpu, std::uint64_t from, std::uint64_t to_cpu, std::uint64_t to) {
        const int id = next_flow_++;
        Json begin = {{"name", name}, {"cat", name},     {"ph", "s"},     {"id", id},
                      {"pid", pid_},  {"tid", from_cpu}, {"ts", us(from)}};
        Json end = {{"name", name}, {"cat", name}, {"ph", "f"},     {"bp", "e"},
                    {"id", id},     {"pid", pid_}, {"tid", to_cpu}, {"ts", us(to)}};
        out_.push_back(std::move(begin));
        out_.push_back(std::move(end));
    }

    /// From each hold to the next one of the same lock on another CPU.
    void handoffs() {
        struct Hold {
            std::uint64_t acquired = 0, released = 0, cpu = 0, lock = 0;
        };
        std::vector<Hold> holds;
        for (const auto& track : process_.tracks) {
            std::optional<Hold> open;
            for (const auto& event : track.events) {
                if (event.kind == "acquired") {
                    open = Hold{event.ns, 0, track.cpu, event.argument};
                } else if (event.kind == "releases" && open && open->lock == event.argument) {
                    open->released = event.ns;
                    holds.push_back(*open);
                    open.reset();
                }
            }
        }
        // Before this time some ring has lost what it held, and the hold before another may be one that nobody knows
        // of.
        std::uint64_t all_known = 0;
        for (const auto& track : process_.tracks)
            if (track.lost != 0 && !track.events.empty())
                all_known = std::max(all_known, track.events.front().ns);
        std::erase_if(holds, [all_known](const Hold& hold) { return hold.acquired < all_known; });
        std::sort(holds.begin(), holds.end(), [](const Hold& a, const Hold& b) {
            return std::tie(a.lock, a.acquired) < std::tie(b.lock, b.acquired);
        });
        for (std::size_t i = 1; i < holds.size(); ++i) {
            const auto& before = holds[i - 1];
            const auto& after = holds[i];
            // An arrow begins inside a slice: at the last moment of the hold.
            if (before.lock == after.lock && before.cpu != after.cpu && before.released <= after.acquired)
                arrow("handoff", before.cpu, before.released, after.cpu, after.acquired);
        }
    }

    /// From each kick to the end of the halt that it found or came before.
    void kicks() {
        std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, std::uint64_t>>> halts; // by CPU: begin, end
        for (const auto& track : process_.tracks) {
            std::optional<std::uint64_t> begin;
            for (const auto& event : track.events) {
                if (event.kind == "halts") {
                    begin = event.ns;
                } else if (event.kind == "wakes" && begin) {
                    halts[track.cpu].emplace_back(*begin, event.ns);
                    begin.reset();
                }
            }
        }
        for (const auto& track : process_.tracks) {
            std::optional<std::uint64_t> sent;
            for (const auto& event : track.events) {
                if (event.kind == "kicks") {
                    sent = event.ns;
                } else if (event.kind == "kicked" && sent) {
                    for (const auto& [begin, end] : halts[event.argument])
                        if (begin <= event.ns && *sent <= end) {
                            arrow("kick", track.cpu, *sent, event.argument, end);
                            break;
                        }
                    sent.reset();
                }
            }
        }
    }

    const TracedRun& process_;
    int pid_;
    int& next_flow_;
    Json& out_;
};

} // namespace

Json trace_of(const Results& results) {
    const Traced traced = traced_runs(results);
    if (traced.runs.empty() && traced.unreadable == 0)
        return nullptr;
    Json events = Json::array();
    int pid = 1, next_flow = 1;
    for (const TracedRun& run : traced.runs)
        Writer(run, pid++, next_flow, events).write();
    Json file = {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
    file["otherData"] = {{"generator", "spinkick-report"}, {"unreadable_records", traced.unreadable}};
    return file;
}

} // namespace spinkick::report
