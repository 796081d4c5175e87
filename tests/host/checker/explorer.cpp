// SPDX-License-Identifier: BSD-2-Clause
#include "tests/host/checker/explorer.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace spinkick::checker {
namespace {

/// A schedule that is longer than this, at random choices, makes no progress.
constexpr std::uint64_t kMostSteps = 200'000;

/// Fingerprint -> number of the state, in the order of discovery. Open addressing; 0 is the empty slot.
class StateTable {
  public:
    StateTable() : slots_(1u << 12) {}

    /// The number, and whether it is new.
    std::pair<std::uint32_t, bool> insert(std::uint64_t fingerprint) {
        if (used_ * 2 > slots_.size())
            grow();
        Slot& slot = find(slots_, fingerprint | 1);
        if (slot.key != 0)
            return {slot.number, false};
        slot = {fingerprint | 1, used_};
        return {used_++, true};
    }
    [[nodiscard]] std::uint32_t size() const { return used_; }

  private:
    struct Slot {
        std::uint64_t key;
        std::uint32_t number;
    };
    static Slot& find(std::vector<Slot>& slots, std::uint64_t key) {
        std::size_t at = key >> 1;
        while (slots[at % slots.size()].key != 0 && slots[at % slots.size()].key != key)
            ++at;
        return slots[at % slots.size()];
    }
    void grow() {
        std::vector<Slot> larger(slots_.size() * 2);
        for (const Slot& slot : slots_)
            if (slot.key != 0)
                find(larger, slot.key) = slot;
        slots_.swap(larger);
    }

    std::vector<Slot> slots_;
    std::uint32_t used_ = 0;
};

/// Which states cannot reach an end any more: the search backwards from the ends, over the steps that were taken.
class ProgressCheck {
  public:
    void step(std::uint32_t from, std::uint32_t to) { steps_.push_back({to, from}); }
    void end(std::uint32_t state) { ends_.push_back(state); }
    void discovered(std::uint32_t parent, Choice by) { parents_.push_back({parent, by}); }

    /// The first state, in the order of discovery, from which nobody gets to an end; `states` if there is none.
    std::uint32_t first_trap(std::uint32_t states) {
        std::sort(steps_.begin(), steps_.end());
        std::vector<bool> reaches(states, false);
        std::vector<std::uint32_t> todo = ends_;
        for (const std::uint32_t state : todo)
            reaches[state] = true;
        while (!todo.empty()) {
            const std::uint32_t to = todo.back();
            todo.pop_back();
            for (auto step = std::lower_bound(steps_.begin(), steps_.end(), Step{to, 0});
                 step != steps_.end() && step->to == to; ++step) {
                if (!reaches[step->from]) {
                    reaches[step->from] = true;
                    todo.push_back(step->from);
                }
            }
        }
        return static_cast<std::uint32_t>(std::find(reaches.begin(), reaches.end(), false) - reaches.begin());
    }

    [[nodiscard]] Choices path_to(std::uint32_t state) const {
        Choices path;
        for (; state != 0; state = parents_[state].state)
            path.push_back(parents_[state].by);
        std::reverse(path.begin(), path.end());
        return path;
    }

  private:
    struct Step {
        std::uint32_t to;
        std::uint32_t from;
        friend auto operator<=>(const Step&, const Step&) = default;
    };
    struct Parent {
        std::uint32_t state;
        Choice by;
    };
    std::vector<Step> steps_;
    std::vector<std::uint32_t> ends_;
    std::vector<Parent> parents_;
};

struct Frame {
    Snapshot state;
    Choices choices;
    std::size_t next = 0;
    std::uint32_t number = 0;
    unsigned preemptions = 0;
};

} // namespace

double cpu_seconds() {
    std::timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

Coverage explore_all(Simulation& simulation, const Limits& limits) {
    Coverage coverage;
    const bool bounded = limits.preemptions != Limits::kNoBound;
    const double deadline = cpu_seconds() + limits.seconds;
    StateTable known;
    ProgressCheck progress;
    std::vector<Frame> path; // keeps its frames, and so their memory, when the search goes back up
    std::size_t depth = 0;

    const auto identify = [&](unsigned preemptions) {
        const std::uint64_t fingerprint = simulation.fingerprint(bounded);
        return known.insert(bounded ? fingerprint ^ (preemptions + 1) * 0x9e37'79b9'7f4a'7c15u : fingerprint);
    };
    const auto enter = [&](std::uint32_t number, unsigned preemptions) {
        if (path.size() == depth)
            path.emplace_back();
        Frame& frame = path[depth];
        simulation.choices(frame.choices);
        frame.next = 0;
        frame.number = number;
        frame.preemptions = preemptions;
        if (frame.choices.empty()) {
            ++coverage.ends;
            ++coverage.schedules;
            progress.end(number);
            return; // nothing to come back for
        }
        if (frame.choices.size() > 1)
            simulation.save(frame.state);
        ++depth;
    };
    const auto schedule_so_far = [&] {
        Choices schedule;
        for (std::size_t d = 0; d < depth; ++d)
            if (path[d].next != 0)
                schedule.push_back(path[d].choices[path[d].next - 1]);
        return schedule;
    };

    progress.discovered(0, {});
    enter(identify(0).first, 0);
    if (!simulation.failure().empty()) // before the first choice
        coverage.failure = simulation.failure();
    while (depth != 0) {
        Frame& frame = path[depth - 1];
        if (frame.next == frame.choices.size()) {
            --depth;
            continue;
        }
        if (frame.next != 0)
            simulation.restore(frame.state);
        const Choice choice = frame.choices[frame.next++];
        unsigned preemptions = frame.preemptions;
        if (bounded && simulation.is_preemption(choice) && ++preemptions > limits.preemptions)
            continue;
        simulation.apply(choice);
        ++coverage.steps;
        coverage.longest = std::max<std::uint64_t>(coverage.longest, depth);
        if (simulation.failure().empty()) {
            const std::uint32_t from = frame.number;
            const auto [number, is_new] = identify(preemptions);
            progress.step(from, number);
            if (is_new) {
                progress.discovered(from, choice);
                enter(number, preemptions);
            } else {
                ++coverage.schedules;
            }
        }
        if (!simulation.failure().empty()) {
            coverage.failure = simulation.failure();
            coverage.schedule = schedule_so_far();
            break;
        }
        if (known.size() >= limits.states || (coverage.steps % 4096 == 0 && cpu_seconds() > deadline)) {
            coverage.complete = false;
            break;
        }
    }
    coverage.states = known.size();
    // Within a bound, a way out may be missing only because it takes one more preemption.
    if (coverage.failure.empty() && coverage.complete && !bounded) {
        const std::uint32_t trap = progress.first_trap(known.size());
        if (trap != known.size()) {
            coverage.failure = "no progress: from here on, no schedule lets all CPUs finish";
            coverage.schedule = progress.path_to(trap);
        }
    }
    return coverage;
}

Coverage explore_random(Simulation& simulation, std::uint64_t seed, std::uint64_t schedules, double seconds) {
    Coverage coverage;
    const double deadline = cpu_seconds() + seconds;
    Snapshot start;
    simulation.save(start);
    std::uint64_t random = seed * 2 + 1;
    Choices choices;
    for (std::uint64_t n = 0; n < schedules && coverage.failure.empty(); ++n) {
        if (n != 0)
            simulation.restore(start);
        coverage.schedule.clear();
        std::uint64_t steps = 0;
        for (;; ++steps) {
            simulation.choices(choices);
            if (choices.empty())
                break;
            // splitmix64 (Steele, Lea, Flood, OOPSLA 2014)
            std::uint64_t z = random += 0x9e37'79b9'7f4a'7c15u;
            z = (z ^ z >> 30) * 0xbf58'476d'1ce4'e5b9u;
            z = (z ^ z >> 27) * 0x94d0'49bb'1331'11ebu;
            z ^= z >> 31;
            // Now and then anybody, else whoever moved last: long undisturbed runs reach deep states.
            const Choice choice = choices[(z & 0x3) == 0 ? 0 : (z >> 8) % choices.size()];
            coverage.schedule.push_back(choice);
            simulation.apply(choice);
            if (!simulation.failure().empty())
                break;
            if (steps == kMostSteps) {
                coverage.failure = "no progress: " + std::to_string(kMostSteps) + " steps and not done";
                return coverage;
            }
        }
        coverage.failure = simulation.failure();
        coverage.steps += steps;
        coverage.longest = std::max(coverage.longest, steps);
        ++coverage.schedules;
        if (cpu_seconds() > deadline) {
            coverage.complete = n + 1 == schedules;
            break;
        }
    }
    return coverage;
}

Coverage replay(Simulation& simulation, const Choices& schedule) {
    Coverage coverage;
    simulation.trace(true);
    Choices choices;
    for (std::size_t n = 0; simulation.failure().empty(); ++n) {
        simulation.choices(choices);
        if (choices.empty() || n > schedule.size() + kMostSteps)
            break;
        Choice choice = choices.front();
        if (n < schedule.size()) {
            choice = schedule[n];
            if (std::find(choices.begin(), choices.end(), choice) == choices.end()) {
                coverage.failure = "the schedule does not fit: choice " + std::to_string(n) + " (" +
                                   to_string({choice}) + ") is not possible here, but " + to_string(choices);
                return coverage;
            }
        }
        coverage.schedule.push_back(choice);
        simulation.apply(choice);
        ++coverage.steps;
    }
    simulation.trace(false);
    coverage.failure = simulation.failure();
    coverage.schedules = 1;
    return coverage;
}

} // namespace spinkick::checker
