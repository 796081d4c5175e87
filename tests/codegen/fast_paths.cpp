// SPDX-License-Identifier: BSD-2-Clause
//
// One plain function per lock and operation, compiled as the image is and never linked: fast_paths.sh looks at their
// instructions. A lock that is missing here is not looked at. A second object has back ends without a flight recorder
// (WITHOUT_RECORDER): same_fast_paths.sh looks for a difference.
#include "arch/x86/paravirt/backends.hpp"

using namespace spinkick;

namespace {

#ifdef WITHOUT_RECORDER
struct Native : paravirt::Native {
    static void record(sync::FlightEvent, std::uint32_t) = delete;
};
struct Ipi : paravirt::Ipi {
    static void record(sync::FlightEvent, std::uint32_t) = delete;
};
#else
struct Native : paravirt::Native {};
struct Ipi : paravirt::Ipi {};
#endif

} // namespace

#define FAST_PATHS(name, type)                                                                                         \
    extern "C" void name##_lock(type& lock) { lock.lock(); }                                                           \
    extern "C" bool name##_try_lock(type& lock) { return lock.try_lock(); }                                            \
    extern "C" void name##_unlock(type& lock) { lock.unlock(); }

FAST_PATHS(tas, sync::TasLock<Native>)
FAST_PATHS(ticket, sync::TicketLock<Native>)
FAST_PATHS(queued, sync::QueuedLock<Native>)
FAST_PATHS(unfair_queued, sync::UnfairQueuedLock<Native>)
FAST_PATHS(debug, sync::DebugLock<Native>)
FAST_PATHS(byte, sync::ByteLock<Ipi>)
FAST_PATHS(pv_ticket, sync::PvTicketLock<Ipi>)
FAST_PATHS(pv_queued, sync::PvQueuedLock<Ipi>)
FAST_PATHS(pv_queued_2014, sync::PvQueued2014Lock<Ipi>)
FAST_PATHS(unfair_pv_queued, sync::UnfairPvQueuedLock<Ipi>)
