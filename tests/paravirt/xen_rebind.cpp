// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: a port that moves to another vCPU under fire loses no event. One vCPU sends to the port without a pause;
// the other one moves it between itself and the sender by EVTCHNOP_bind_vcpu, with the port masked during the move, and
// unmasks it by EVTCHNOP_unmask: port, announcement and flag of the new vCPU must then all say that it is pending. When
// the fire has stopped, one last send must raise the flag of the new vCPU and leave that of the old one alone. In the
// end the port is closed, and sending to it is an error.
//
// IPI ports cannot move: the port is one end of a channel of the domain to itself. Nobody takes the events but the
// test: so only in guests that set no upcall, which is HVM.
#include "tests/paravirt/event_ports.hpp"
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

using B = paravirt::Xen;
using namespace event_ports;

constexpr std::uint32_t kMover = 0, kSender = 1;
constexpr Nanoseconds kLimit = seconds(1);
constexpr std::uint32_t kLeast = 16;

struct Shared {
    Turn fire, moved, quiet;
    std::atomic<bool> over{false};
    std::uint32_t moving = kNoPort; ///< the end that is received at
    std::uint32_t far = kNoPort;    ///< the end that is sent to
    std::uint32_t rounds = 0;
    const char* failure = nullptr;
    bool port_was_pending = false, was_announced = false, flag_was_set = false;
    std::uint32_t on_cpu = 0;
    std::int64_t error = 0;
};
constinit Shared shared{};

CpuId cpu_of(std::uint32_t worker) noexcept { return workers::cpu_of(worker, first_cpu()); }

bool is_announced(CpuId cpu) noexcept { return event_ports::is_announced(cpu, shared.moving); }

void forget_events() noexcept {
    clear_pending(shared.moving);
    for (const auto worker : {kMover, kSender})
        forget_announced(cpu_of(worker));
}

bool arrives_at(CpuId cpu) noexcept {
    const clock::Deadline deadline(kLimit);
    while (!is_pending(shared.moving) || !is_announced(cpu) || !upcall_flag(cpu))
        if (deadline.passed())
            return false;
        else
            machine::relax();
    return true;
}

void fail(const char* what, CpuId cpu) noexcept {
    shared.failure = what;
    shared.port_was_pending = is_pending(shared.moving);
    shared.was_announced = is_announced(cpu);
    shared.flag_was_set = upcall_flag(cpu);
    shared.on_cpu = raw(cpu);
}

/// False if a promise was broken.
bool move_to(CpuId to, CpuId from, std::uint32_t round) noexcept {
    shared.fire.set(round); // from here on the port is sent to all the time
    set_masked(shared.moving, true);
    const abi::evtchn_bind_vcpu bind{shared.moving, raw(x86::percpu_of(to).xen_vcpu_id)};
    shared.error = event_call(abi::EVTCHNOP_bind_vcpu, &bind);
    // What was linked on the queue of the old vCPU would be found there, and on no other until then (FIFO).
    forget_announced(from);
    clear_pending(shared.moving);
    const abi::evtchn_port argument{shared.moving};
    if (shared.error == 0)
        shared.error = event_call(abi::EVTCHNOP_unmask, &argument);
    const bool arrived = shared.error == 0 && arrives_at(to);
    if (!arrived)
        fail(shared.error != 0 ? "the move is refused" : "no event arrives at the new vCPU after a move under fire",
             to);
    shared.moved.set(round);
    shared.quiet.await(round);
    if (!arrived)
        return false;

    forget_events();
    (void)send(shared.far);
    if (!arrives_at(to)) {
        fail("the last send does not arrive at the new vCPU", to);
        return false;
    }
    if (upcall_flag(from) || is_announced(from)) {
        fail("the last send raises the flags of the old vCPU", from);
        return false;
    }
    return true;
}

void mover() noexcept {
    const Rounds rounds(milliseconds(20), kLeast);
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) { // written here only
        if (rounds.is_last(round))
            shared.over.store(true, std::memory_order_relaxed); // published by `fire`
        const bool to_sender = round % 2 == 1;
        const bool kept = move_to(cpu_of(to_sender ? kSender : kMover), cpu_of(to_sender ? kMover : kSender), round);
        shared.rounds = round;
        workers::progress();
        if (!kept && !shared.over.load(std::memory_order_relaxed)) {
            shared.over.store(true, std::memory_order_relaxed);
            shared.moved.set(round + 1); // the sender's next round is its last one
            shared.fire.set(round + 1);
        }
    }
}

void sender() noexcept {
    for (std::uint32_t round = 1;; ++round) {
        shared.fire.await(round);
        const bool last = shared.over.load(std::memory_order_relaxed);
        while (!shared.moved.reached(round))
            (void)send(shared.far);
        shared.quiet.set(round);
        workers::progress();
        if (last)
            return;
    }
}

/// A channel of the domain to itself.
std::int64_t open_channel() noexcept {
    abi::evtchn_alloc_unbound unbound{abi::DOMID_SELF, abi::DOMID_SELF, 0};
    if (const auto result = event_call(abi::EVTCHNOP_alloc_unbound, &unbound); result < 0)
        return result;
    shared.moving = unbound.port;
    abi::evtchn_bind_interdomain bind{abi::DOMID_SELF, 0, unbound.port, 0};
    if (const auto result = event_call(abi::EVTCHNOP_bind_interdomain, &bind); result < 0)
        return result;
    shared.far = bind.local_port;
    forget_events(); // a channel is born with an event
    return 0;
}

void run(test::TestContext& context) {
    if (vcpu_vector_given)
        return context.skip("%s", kVectorFact);
    if (x86::xen_pv::is_active())
        return context.skip("PV guest: its upcall takes the events that this test looks for");
    for (auto* turn : {&shared.fire, &shared.moved, &shared.quiet})
        turn->reset();
    shared.over.store(false, std::memory_order_relaxed);
    shared.failure = nullptr;
    shared.moving = shared.far = kNoPort;
    if (const auto result = open_channel(); result < 0) {
        close(shared.moving);
        return context.skip("no channel of this domain to itself: error %ld", result);
    }
    const auto body = [](std::uint32_t worker, void*) { worker == kMover ? mover() : sender(); };
    const bool ended = run_workers<B>(context, 2, body, nullptr, "moving a port stalled the machine");
    const auto closed = shared.far;
    close(shared.far);
    const auto after = send(closed);
    close(shared.moving);
    forget_events();
    if (!ended)
        return;
    if (shared.failure != nullptr)
        return context.fail("round %u: %s: CPU %u, port %s, %sannounced, flag %u, error %ld", shared.rounds,
                            shared.failure, shared.on_cpu, shared.port_was_pending ? "pending" : "not pending",
                            shared.was_announced ? "" : "not ", shared.flag_was_set ? 1u : 0u, shared.error);
    if (after != -abi::XEN_EINVAL)
        return context.fail("EVTCHNOP_send to the closed port %u returns %ld, expected EINVAL (%ld)", closed, after,
                            -abi::XEN_EINVAL);
    context.pass();
}

constexpr std::array kTests = {
    test::Test{.name = "paravirt.moved_port_loses_no_event",
               .backend = B::kName,
               .claim = "events of a port that moves between vCPUs under fire arrive at the new vCPU, and only there",
               .min_cpus = 2,
               .needs = test::Backend::xen,
               .run = run}};
constinit const test::TestGroup xen_rebind_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(xen_rebind_group);

} // namespace spinkick::paravirt_tests
