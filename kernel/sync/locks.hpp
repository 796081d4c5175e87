// SPDX-License-Identifier: BSD-2-Clause
//
// The one list of lock algorithms, and how it is crossed with back ends. Every test, benchmark and report walks this
// list: a new algorithm is one header and one line here.
//
//   using Locks = sync::CrossLocks<Native, Ipi, Kvm, Xen>;
//   Locks::for_each([]<class L>() { ... L::kName ... typename L::Machine ... });
//
// An algorithm that only spins is listed on back ends that only spin; one that sleeps, on those that can sleep and
// kick. Crossing the first kind with the second would list the same instructions again under another name.
#pragma once

#include <cstddef>
#include <type_traits>

#include "kernel/sync/broken_lock.hpp"
#include "kernel/sync/byte_lock.hpp"
#include "kernel/sync/concepts.hpp"
#include "kernel/sync/debug_lock.hpp"
#include "kernel/sync/null_lock.hpp"
#include "kernel/sync/pv_queued_2014_lock.hpp"
#include "kernel/sync/pv_queued_lock.hpp"
#include "kernel/sync/pv_ticket_lock.hpp"
#include "kernel/sync/queued_lock.hpp"
#include "kernel/sync/tas_lock.hpp"
#include "kernel/sync/ticket_lock.hpp"
#include "kernel/sync/unfair_pv_queued_lock.hpp"
#include "kernel/sync/unfair_queued_lock.hpp"

namespace spinkick::sync {

template <class... Ts>
struct TypeList {
    static constexpr std::size_t kSize = sizeof...(Ts);

    /// Calls f.operator()<T>() for each type in order.
    template <class F>
    static constexpr void for_each(F&& f) {
        (f.template operator()<Ts>(), ...);
    }

    /// Another template over the same types, for example testing::Types.
    template <template <class...> class Other>
    using Apply = Other<Ts...>;
};

template <class... Lists>
struct ConcatLists;
template <>
struct ConcatLists<> {
    using type = TypeList<>;
};
template <class... Ts>
struct ConcatLists<TypeList<Ts...>> {
    using type = TypeList<Ts...>;
};
template <class... As, class... Bs, class... Rest>
struct ConcatLists<TypeList<As...>, TypeList<Bs...>, Rest...> : ConcatLists<TypeList<As..., Bs...>, Rest...> {};

/// Every lock exists here and nowhere else.
//
// One line each.
// clang-format off
template <LockMachine B>
using SpinningLocks = TypeList<
    NullLock<B>,
    BrokenLock<B>,
    TasLock<B>,
    TicketLock<B>,
    QueuedLock<B>,
    UnfairQueuedLock<B>,
    DebugLock<B>>;

template <ParavirtBackend B>
using SleepingLocks = TypeList<
    PvTicketLock<B>,
    PvQueuedLock<B>,
    PvQueued2014Lock<B>,
    UnfairPvQueuedLock<B>,
    ByteLock<B>>;
// clang-format on

/// The locks to list on back end B.
template <LockMachine B>
struct LocksOnBackend {
    using type = SpinningLocks<B>;
};
template <ParavirtBackend B>
struct LocksOnBackend<B> {
    using type = SleepingLocks<B>;
};
template <LockMachine B>
using LocksOn = typename LocksOnBackend<B>::type;

/// The whole table, back end by back end.
template <LockMachine... Backends>
using CrossLocks = typename ConcatLists<LocksOn<Backends>...>::type;

/// A call, so that a compiler names the lock and what it lacks.
template <Lock L>
consteval bool is_lock() noexcept {
    return true;
}

/// True if every type of the list is a Lock: asserted once, where the table is made.
template <class List>
inline constexpr bool kAllAreLocks = false;
template <class... Ts>
inline constexpr bool kAllAreLocks<TypeList<Ts...>> = (is_lock<Ts>() && ...);

} // namespace spinkick::sync
