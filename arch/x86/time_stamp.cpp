// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/time_stamp.hpp"

#include "arch/x86/paravirt/hypervisor.hpp"
#include "arch/x86/paravirt/pvclock.hpp"
#include "arch/x86/percpu.hpp"
#include "arch/x86/xen_pv/active.hpp"
#include "kernel/clock.hpp"
#include "kernel/stress/flight_recorder.hpp"

namespace spinkick::x86 {
namespace {

constinit Tsc offset{}; ///< makes the change from one counter to the other a smooth one

/// Xen's time in ticks; false if this CPU has no page yet, or one that does not come to rest.
bool read_xen_time(Tsc& out) noexcept {
    namespace pvclock = paravirt::pvclock;
    const auto* page = pvclock::page_of(this_cpu());
    if (page == nullptr)
        return false;
    pvclock::Reading reading;
    Tsc now{};
    // The counter is read before the second look at the version: a vCPU that was preempted between the copy and RDTSC
    // would lose the time of its absence.
    if (!pvclock::read(*page, reading, [&now] { now = rdtsc(); }))
        return false;
    out = clock::to_ticks(reading.at(now));
    return true;
}

} // namespace

Tsc detail::xen_time_stamp() noexcept {
    Tsc ticks{};
    return read_xen_time(ticks) ? Tsc{ticks.value + offset.value} : rdtsc();
}

void choose_time_stamp() noexcept {
    Tsc ticks{};
    if (xen_pv::is_active() || !paravirt::hypervisors().xen_emulates_tsc || !read_xen_time(ticks))
        return;
    offset = rdtsc() - ticks;
    detail::follows_xen_time = true;
    // Each time stamp is an exit from now on: more than most events cost that it would belong to.
    stress::flight_recording.store(false, std::memory_order_relaxed);
}

} // namespace spinkick::x86
