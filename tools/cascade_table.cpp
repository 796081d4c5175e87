// SPDX-License-Identifier: BSD-2-Clause
#include "tools/cascade_table.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "tools/sides.hpp"
#include "tools/text.hpp"
#include "tools/text_table.hpp"
#include "tools/trace_record.hpp"
#include "tools/units.hpp"

namespace spinkick::report {
namespace {

enum class Why { spun, state, flag };

struct Sleep {
    std::uint64_t begin = 0, end = std::numeric_limits<std::uint64_t>::max();
    Why why = Why::spun;
    std::optional<std::uint64_t> behind; ///< the CPU it is queued behind
    enum class Depth { not_asked, asking, known, unknown } state = Depth::not_asked;
    std::uint64_t depth = 0; ///< 0 of one that has spun out; 1 of an early one that follows it
};

/// What one vCPU did, as far as its ring has kept it.
struct History {
    std::vector<Sleep> sleeps;
    std::vector<std::uint64_t> steps; ///< times of `wants` and `acquired`: the node before them was another one
    std::uint64_t known_from = 0;
};

History history_of(const TraceTrack& track, const EarlyWaits& early) {
    History history;
    if (track.lost != 0)
        history.known_from = track.events.empty() ? std::numeric_limits<std::uint64_t>::max() : track.events.front().ns;
    std::optional<std::uint64_t> behind;
    bool sleeping = false;
    for (const TraceEvent& event : track.events) {
        if (event.kind == "wants" || event.kind == "acquired") {
            history.steps.push_back(event.ns);
            behind.reset();
        } else if (event.kind == "queued") {
            behind = event.argument;
        } else if (event.kind == "halts") {
            Sleep sleep;
            sleep.begin = event.ns;
            sleep.why = event.argument == early.by_state  ? Why::state
                        : event.argument == early.by_flag ? Why::flag
                                                          : Why::spun;
            sleep.behind = behind;
            history.sleeps.push_back(sleep);
            sleeping = true;
        } else if (event.kind == "wakes" && sleeping) {
            history.sleeps.back().end = event.ns;
            sleeping = false;
        }
    }
    return history;
}

class Cascades {
  public:
    explicit Cascades(const TracedRun& run) {
        for (const TraceTrack& track : run.tracks)
            histories_[track.cpu] = history_of(track, *run.early);
    }

    void add_to(CascadeRow& row) {
        for (auto& [cpu, history] : histories_)
            for (Sleep& sleep : history.sleeps)
                add(sleep, row);
    }

  private:
    void add(Sleep& sleep, CascadeRow& row) {
        ++row.sleeps;
        if (sleep.why == Why::spun)
            return;
        ++row.early;
        if (sleep.why == Why::flag) {
            ++row.by_flag;
        } else if (const Sleep* before = predecessor_of(sleep); before == nullptr) {
            ++row.unknown;
        } else {
            ++(before->why == Why::spun ? row.behind_spun : row.behind_early);
        }
        if (const auto depth = depth_of(sleep)) {
            ++row.depths[std::min<std::uint64_t>(*depth, CascadeRow::kDepths) - 1];
            row.deepest = std::max(row.deepest, *depth);
        }
    }

    std::optional<std::uint64_t> depth_of(Sleep& sleep) {
        if (sleep.state == Sleep::Depth::not_asked) {
            sleep.state = Sleep::Depth::asking; // a circle is none of ours: a record that lies
            std::optional<std::uint64_t> depth;
            if (sleep.why == Why::spun)
                depth = 0;
            else if (sleep.why == Why::flag)
                depth = 1;
            else if (Sleep* before = predecessor_of(sleep))
                if (const auto its = depth_of(*before))
                    depth = *its + 1;
            sleep.state = depth ? Sleep::Depth::known : Sleep::Depth::unknown;
            sleep.depth = depth.value_or(0);
        }
        return sleep.state == Sleep::Depth::known ? std::optional{sleep.depth} : std::nullopt;
    }

    /// The sleep of the predecessor that `sleep` has seen. A node says that it sleeps from before its vCPU does until
    /// after it is awake again, so that the one that is meant may begin a little later, or be over; but no acquisition
    /// lies between.
    Sleep* predecessor_of(const Sleep& sleep) {
        const auto found = sleep.behind ? histories_.find(*sleep.behind) : histories_.end();
        if (found == histories_.end() || sleep.begin < found->second.known_from)
            return nullptr;
        History& history = found->second;
        const auto same_node = [&history](std::uint64_t from, std::uint64_t to) {
            const auto step = std::upper_bound(history.steps.begin(), history.steps.end(), from);
            return step == history.steps.end() || *step >= to;
        };
        Sleep* nearest = nullptr;
        for (Sleep& other : history.sleeps) {
            if (other.begin > sleep.begin) {
                if (nearest == nullptr && same_node(sleep.begin, other.begin))
                    nearest = &other;
                break;
            }
            if (other.end >= sleep.begin || same_node(other.end, sleep.begin))
                nearest = &other;
            else
                nearest = nullptr;
        }
        return nearest;
    }

    std::map<std::uint64_t, History> histories_; // by CPU
};

} // namespace

CascadeTable cascade_table(const Results& results) {
    constexpr std::array<std::string_view, 3> kPolicies{"off", "state", "preempted"};
    CascadeTable table;
    const Traced traced = traced_runs(results);
    using Key = std::tuple<std::string, std::string, std::string, std::size_t>;
    std::map<Key, std::map<std::size_t, CascadeRow>> blocks;
    for (const TracedRun& run : traced.runs) {
        if (!run.early)
            continue;
        const auto policy = std::find(kPolicies.begin(), kPolicies.end(), run.early->policy);
        if (policy == kPolicies.end()) {
            table.problems.push_back(fmt::format("{}: wait_early is \"{}\", none of {}", printable(run.lock),
                                                 printable(run.early->policy), fmt::join(kPolicies, ", ")));
            continue;
        }
        auto& row = blocks[{run.lock, run.platform, run.timing, run.tracks.size()}]
                          [static_cast<std::size_t>(policy - kPolicies.begin())];
        row.policy = *policy;
        ++row.runs;
        Cascades(run).add_to(row);
    }
    for (auto& [key, rows] : blocks) {
        CascadeBlock block{std::get<0>(key), std::get<1>(key), std::get<2>(key), std::get<3>(key), {}};
        for (auto& [policy, row] : rows)
            block.rows.push_back(row);
        table.blocks.push_back(std::move(block));
    }
    if (table.blocks.empty())
        table.problems.emplace_back("no trace of pv-queued: --append \"tests=trace.contention locks=pv-queued\"");
    if (traced.unreadable != 0)
        table.problems.push_back(fmt::format("{} trace records cannot be read", traced.unreadable));
    return table;
}

std::string text_of(const CascadeTable& table) {
    std::string out;
    for (const CascadeBlock& block : table.blocks) {
        TextTable lines({"wait_early", "runs", "halts", "early", "by flag", "after spinning", "after early", "unknown",
                         "depth 1", "2", "3", "4", "5+", "deepest", ""},
                        1);
        for (const CascadeRow& row : block.rows) {
            std::vector<std::string> cells{row.policy};
            for (const std::uint64_t count :
                 {row.runs, row.sleeps, row.early, row.by_flag, row.behind_spun, row.behind_early, row.unknown})
                cells.push_back(std::to_string(count));
            for (const std::uint64_t count : row.depths)
                cells.push_back(std::to_string(count));
            cells.push_back(std::to_string(row.deepest));
            lines.add(std::move(cells));
        }
        out += fmt::format("{}, {} vCPUs, on {}{}: early halts and what they stand behind\n{}\n", printable(block.lock),
                           block.cpus, printable(block.platform), emulation_text(block.timing == "emulated"),
                           lines.text());
    }
    if (!table.blocks.empty())
        out +=
            "  early: halts before the threshold was spun out. by flag: the hypervisor said that the predecessor was\n"
            "  preempted. after spinning: the predecessor slept and had spun for its whole threshold. after early: it "
            "slept\n"
            "  and had halted early itself, so that this one is a consequence of that one. unknown: its events are "
            "lost.\n"
            "  depth: how many early halts stand one behind the other, this one included; 1 begins a cascade.\n";
    for (const std::string& problem : table.problems)
        out += "problem     " + problem + "\n";
    return out;
}

} // namespace spinkick::report
