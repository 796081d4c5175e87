// SPDX-License-Identifier: BSD-2-Clause
//
// check_locks: runs the lock headers through schedules, and prints what it covered. See docs/checker.md.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "tests/host/checker/explorer.hpp"
#include "tests/host/checker/mutant_switch.hpp"
#include "tests/host/checker/plan.hpp"

unsigned spinkick_mutant = 0;

namespace spinkick::checker {
namespace {

struct Options {
    std::string lock;
    std::string scenario;
    std::string schedule;
    bool replay = false;
    bool list = false;
    bool longer = false;
    double seconds = 0; ///< 0: as planned
    std::uint64_t seed = 1;
};

constexpr const char* kUsage =
    "usage: check_locks [--lock NAME] [--scenario NAME] [--long] [--seconds N] [--seed N]\n"
    "       check_locks --lock NAME --scenario NAME --schedule STRING     replays and prints one schedule\n"
    "       check_locks --list\n"
    "       --mutant N, with any of the first two: the Nth fault of the mutated headers (check_mutants only)\n"
    "exit code: 0 all held, 1 a lock failed, 2 usage or a broken checker\n";

bool parse_options(int count, char** words, Options& options) {
    for (int n = 1; n < count; ++n) {
        const std::string_view word = words[n];
        const char* value = n + 1 < count ? words[n + 1] : nullptr;
        if (word == "--list") {
            options.list = true;
            continue;
        }
        if (word == "--long") {
            options.longer = true;
            continue;
        }
        if (value == nullptr)
            return false;
        ++n;
        char* rest = nullptr;
        if (word == "--lock") {
            options.lock = value;
        } else if (word == "--scenario") {
            options.scenario = value;
        } else if (word == "--schedule") {
            options.schedule = value;
            options.replay = true;
        } else if (word == "--seconds") {
            options.seconds = std::strtod(value, &rest);
            if (*rest != '\0' || options.seconds <= 0)
                return false;
        } else if (word == "--mutant") {
            spinkick_mutant = static_cast<unsigned>(std::strtoul(value, &rest, 10));
            if (*rest != '\0')
                return false;
        } else if (word == "--seed") {
            options.seed = std::strtoull(value, &rest, 10);
            if (*rest != '\0')
                return false;
        } else {
            return false;
        }
    }
    return !options.replay || (!options.lock.empty() && !options.scenario.empty());
}

void print_coverage(const LockUnderCheck& lock, const PlannedScenario& planned, const char* how,
                    const Coverage& coverage, double seconds) {
    std::printf("%-14s %-14s %-16s %10llu schedules %9llu states %10llu steps  longest %5llu  %6.2f s%s\n", lock.name,
                planned.name, how, static_cast<unsigned long long>(coverage.schedules),
                static_cast<unsigned long long>(coverage.states), static_cast<unsigned long long>(coverage.steps),
                static_cast<unsigned long long>(coverage.longest), seconds,
                coverage.complete ? "" : "  (cut short by the limit)");
    std::fflush(stdout);
}

/// A negative control: it does not exclude, or has a fault of its own.
bool is_faulty(const LockUnderCheck& lock) { return !lock.excludes || lock.fault != nullptr; }

/// The lock is faulty, or the machine under it breaks a promise.
bool must_fail(const LockUnderCheck& lock, const PlannedScenario& planned) {
    return is_faulty(lock) || planned.scenario.fault != MachineFault::none;
}

/// Prints the failing schedule as an interleaving, and how to see it again.
void print_failure(Simulation& simulation, const LockUnderCheck& lock, const PlannedScenario& planned,
                   const Coverage& coverage) {
    std::printf("\n%s %s %s: %s\n\n", must_fail(lock, planned) ? "found, as it must be:" : "FAILED", lock.name,
                planned.name, coverage.failure.c_str());
    simulation.start(lock, planned.scenario);
    const Coverage again = replay(simulation, coverage.schedule);
    if (again.failure != coverage.failure)
        std::printf("(the replay says: %s)\n", again.failure.empty() ? "no failure" : again.failure.c_str());
    std::printf("\nreplay: check_locks --lock %s --scenario %s --schedule %s\n\n", lock.name, planned.name,
                to_string(coverage.schedule).c_str());
    std::fflush(stdout);
}

/// Bound of the search for the shortest failing schedule, and of the one that replaces a search that is cut short.
constexpr unsigned kMostPreemptions = 3;

/// The failure that was found, empty if none.
std::string check(Simulation& simulation, const LockUnderCheck& lock, const PlannedScenario& planned,
                  const Options& options) {
    const double limit = options.seconds > 0 ? options.seconds
                         : options.longer    ? planned.long_seconds
                                             : planned.seconds;
    const double started = cpu_seconds();
    Coverage coverage;
    std::string how;
    if (planned.random) {
        how = "seed " + std::to_string(options.seed);
        simulation.start(lock, planned.scenario);
        coverage = explore_random(simulation, options.seed, ~std::uint64_t{0}, limit);
        coverage.complete = true; // there is no end to be cut off from
        print_coverage(lock, planned, how.c_str(), coverage, cpu_seconds() - started);
    } else {
        Limits limits;
        limits.seconds = limit;
        simulation.start(lock, planned.scenario);
        coverage = explore_all(simulation, limits);
        print_coverage(lock, planned, "all", coverage, cpu_seconds() - started);
        // Where all is too much, and where something has failed and the shortest story is wanted: few preemptions.
        for (unsigned bound = 0;
             bound <= kMostPreemptions && (!coverage.failure.empty() || (!coverage.complete && spinkick_mutant == 0));
             ++bound) {
            limits.preemptions = bound;
            how = "preemptions " + std::to_string(bound);
            const double before = cpu_seconds();
            simulation.start(lock, planned.scenario);
            Coverage bounded = explore_all(simulation, limits);
            print_coverage(lock, planned, how.c_str(), bounded, cpu_seconds() - before);
            const bool failed = !bounded.failure.empty();
            if (failed)
                coverage = std::move(bounded);
            if (failed || !bounded.complete)
                break;
        }
    }
    if (const std::string where = simulation.untracked_change(); !where.empty()) {
        std::printf("ERROR %s: %s was changed and is not part of the saved state: results mean nothing\n", lock.name,
                    where.c_str());
        std::exit(2);
    }
    if (coverage.failure.empty())
        return {};
    print_failure(simulation, lock, planned, coverage);
    return coverage.failure;
}

int run(const Options& options) {
    Simulation simulation;
    if (options.list) {
        for (const LockUnderCheck& lock : locks_under_check())
            for (const PlannedScenario& planned : kPlan)
                if (applies(planned, lock))
                    std::printf("--lock %s --scenario %s\n", lock.name, planned.name);
        return 0;
    }
    unsigned checked = 0;
    bool held = true;
    for (const LockUnderCheck& lock : locks_under_check()) {
        if (!options.lock.empty() && options.lock != lock.name)
            continue;
        bool reported = false;
        for (const PlannedScenario& planned : kPlan) {
            if ((!options.scenario.empty() && options.scenario != planned.name) || !applies(planned, lock))
                continue;
            if (options.replay) {
                Choices schedule;
                if (!parse(options.schedule, schedule)) {
                    std::fprintf(stderr, "check_locks: not a schedule: %s\n", options.schedule.c_str());
                    return 2;
                }
                simulation.start(lock, planned.scenario);
                const Coverage coverage = replay(simulation, schedule);
                std::printf("\n%s\n", coverage.failure.empty() ? "no failure" : coverage.failure.c_str());
                return coverage.failure.empty() ? 0 : 1;
            }
            if (spinkick_mutant != 0 && must_fail(lock, planned))
                continue; // fails by itself
            ++checked;
            const std::string failure = check(simulation, lock, planned, options);
            if (planned.scenario.fault != MachineFault::none && lock.excludes) {
                if (failure.empty()) {
                    std::printf("FAILED %s %s: the machine breaks a promise, and no schedule has shown it: the checker "
                                "is blind\n",
                                lock.name, planned.name);
                    held = false;
                }
            } else if (!failure.empty()) {
                reported = true;
                if (lock.fault != nullptr && !failure.starts_with(lock.fault)) {
                    std::printf("FAILED %s: its fault is \"%s\", and this is something else\n", lock.name, lock.fault);
                    held = false;
                }
                break; // it would fail the others as well
            }
        }
        if (!is_faulty(lock) && reported)
            held = false;
        if (is_faulty(lock) && !reported && options.scenario.empty()) {
            std::printf("FAILED %s: its fault is \"%s\", and no schedule has shown it: the checker is blind\n",
                        lock.name, lock.fault != nullptr ? lock.fault : "mutual exclusion");
            held = false;
        }
    }
    if (checked == 0) {
        std::fprintf(stderr, "check_locks: no such lock or scenario (see --list)\n");
        return 2;
    }
    std::printf("\nevents reached:");
    for (std::size_t event = 0; event < sync::kLockEvents; ++event)
        if (simulation.events()[event] != 0)
            std::printf(" %s=%llu", std::string(sync::kLockEventNames[event]).c_str(),
                        static_cast<unsigned long long>(simulation.events()[event]));
    std::printf("\n%s\n", held ? "all locks held" : "a lock FAILED");
    return held ? 0 : 1;
}

} // namespace
} // namespace spinkick::checker

int main(int count, char** words) {
    spinkick::checker::Options options;
    if (!spinkick::checker::parse_options(count, words, options)) {
        std::fputs(spinkick::checker::kUsage, stderr);
        return 2;
    }
    return spinkick::checker::run(options);
}
