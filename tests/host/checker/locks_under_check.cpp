// SPDX-License-Identifier: BSD-2-Clause
//
// The real lock headers, once, over the checker's machines. This is the only file of the checker that includes them, so
// a changed header costs one small compilation (mutate.sh lives from it). A lock that is added to kernel/sync/locks.hpp
// is checked without a change here.
#include <new>

#include "kernel/sync/locks.hpp"
#include "tests/host/checker/historical_locks.hpp"
#include "tests/host/checker/simulation.hpp"

namespace spinkick::checker {
namespace {

using Locks = sync::CrossLocks<SpinningChecker, SleepingChecker>;
static_assert(sync::kAllAreLocks<Locks>);

/// A form that was published and loses a wake-up: the checker must find it.
using PublishedMayHalt = sync::PvQueued2014Lock<SleepingChecker, sync::MayHalt::published>;
static_assert(sync::Lock<PublishedMayHalt>);

template <class L>
bool (*at_rest_of())() {
    if constexpr (requires { L::at_rest(); })
        return [] { return L::at_rest(); };
    else
        return nullptr;
}

template <class L>
LockUnderCheck erase_type(const char* name, const char* fault) {
    static_assert(sizeof(L) <= 128, "the checker gives a lock 128 bytes");
    return {.name = name,
            .sleeps = L::kSleeps,
            .excludes = L::kExcludes,
            .fault = fault,
            .size = sizeof(L),
            .construct = [](void* where) { new (where) L; },
            .lock = [](void* lock) { static_cast<L*>(lock)->lock(); },
            .try_lock = [](void* lock) { return static_cast<L*>(lock)->try_lock(); },
            .unlock = [](void* lock) { static_cast<L*>(lock)->unlock(); },
            .at_rest = at_rest_of<L>()};
}

template <class L>
LockUnderCheck erase_control(const char* fault) {
    static_assert(sync::Lock<L>);
    return erase_type<L>(L::kName, fault);
}

} // namespace

const std::vector<LockUnderCheck>& locks_under_check() {
    static const std::vector<LockUnderCheck> locks = [] {
        std::vector<LockUnderCheck> list;
        Locks::for_each([&list]<class L>() { list.push_back(erase_type<L>(L::kName, nullptr)); });
        list.push_back(erase_type<PublishedMayHalt>("pv-queued-2014-may-halt", "lost wake-up"));
        list.push_back(erase_control<TailFlagTicketLock<SleepingChecker>>("use after free"));
        list.push_back(erase_control<FaultyByteLock<SleepingChecker, ByteLockFault::no_barrier>>("lost wake-up"));
        list.push_back(erase_control<FaultyByteLock<SleepingChecker, ByteLockFault::kicks_one>>("lost wake-up"));
        list.push_back(erase_control<NarrowTicketLock<SpinningChecker>>("mutual exclusion"));
        return list;
    }();
    return locks;
}

void set_spin_threshold(unsigned looks) {
    sync::tuning.spin_threshold.store(looks, std::memory_order_relaxed);
    sync::tuning.byte_timeout.store(looks, std::memory_order_relaxed);
    sync::tuning.qspin_threshold.store(looks, std::memory_order_relaxed);
    sync::tuning.steal_interval.store(looks, std::memory_order_relaxed);
}

} // namespace spinkick::checker
