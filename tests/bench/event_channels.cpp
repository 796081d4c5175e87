// SPDX-License-Identifier: BSD-2-Clause
//
// bench.event_channels: from EVTCHNOP_send on one vCPU to the first instruction for it on another, for every way in
// which Xen tells of an event and every state in which it finds the receiver. In the form that evtchn= has chosen; two
// runs make the comparison. On request: a vCPU that was given a vector of its own keeps it.
//
//   poll              a masked port and SCHEDOP_poll: what the kicks of the locks are
//   callback vector   HVM and PVH: one vector for all vCPUs, injected past the local APIC for as long as the upcall
//   flag
//                     is set; no EOI
//   vCPU vector       HVM and PVH: a vector of the vCPU's, an edge through its local APIC, with an EOI
//   event callback    PV: Xen's own way into the guest's kernel
//
// A running receiver spins; a halted one has executed HLT with interrupts on, or SCHEDOP_block. The send itself, a
// hypercall, is part of the time.
#include "arch/x86/lapic.hpp"
#include "arch/x86/traps.hpp"
#include "kernel/json.hpp"
#include "kernel/log.hpp"
#include "kernel/options.hpp"
#include "kernel/stress/histogram.hpp"
#include "tests/paravirt/event_ports.hpp"
#include "tests/paravirt/pair.hpp"

namespace spinkick::bench {
namespace {

using namespace paravirt_tests;
using namespace paravirt_tests::event_ports;
using B = paravirt::Xen;

enum class Notice : std::uint8_t { poll, callback_vector, vcpu_vector, event_callback };
enum class Receiver : std::uint8_t { polling, running, halted };

struct Way {
    Notice notice;
    Receiver receiver;
    const char* name;
    const char* state;
};
/// The vCPU vector last: it stays.
constexpr std::array kHvmWays = {
    Way{Notice::poll, Receiver::polling, "poll", "polling"},
    Way{Notice::callback_vector, Receiver::running, "callback vector", "running"},
    Way{Notice::callback_vector, Receiver::halted, "callback vector", "halted"},
    Way{Notice::vcpu_vector, Receiver::running, "vCPU vector", "running"},
    Way{Notice::vcpu_vector, Receiver::halted, "vCPU vector", "halted"},
};
constexpr std::array kPvWays = {
    Way{Notice::poll, Receiver::polling, "poll", "polling"},
    Way{Notice::event_callback, Receiver::running, "event callback", "running"},
    Way{Notice::event_callback, Receiver::halted, "event callback", "halted"},
};

constexpr std::uint32_t kSender = 0, kReceiver = 1;
constexpr std::uint32_t kMostEvents = 2000;
constexpr std::uint32_t kLeastEvents = 50;
constexpr Nanoseconds kPollLimit = seconds(1); ///< of one poll; an event ends it

struct Shared {
    Turn ready, taken;
    std::atomic<bool> over{false};
    Way way{};
    std::uint32_t port = kNoPort;
    Tsc sent{};    ///< by the sender's counter; published by the send
    Tsc arrived{}; ///< by the receiver's; published by `taken`
    std::uint32_t round = 0;
    std::uint64_t seed = 0;
    stress::Histogram latency;
    std::uint32_t unusable = 0; ///< arrived before they were sent: the counters' skew is more than the time itself
};
constinit Shared shared{};

CpuId receiver_cpu() noexcept { return workers::cpu_of(kReceiver, first_cpu()); }

/// The event of this round has come; its time was taken before anything else.
void on_arrival(Tsc when) noexcept {
    shared.arrived = when;
    shared.taken.set(shared.round);
}

void on_upcall(x86::TrapFrame&) noexcept {
    const Tsc when = machine::time_stamp();
    const auto self = x86::this_cpu();
    while (take_upcall_flag(self))
        paravirt::xen_events::take_announced(self, info_of(self), [when](std::uint32_t port) noexcept {
            if (port != shared.port)
                return;
            clear_pending(port);
            on_arrival(when);
        });
}

/// Says to Xen how this domain, or its receiver, is told. False: it refuses.
bool choose(Notice notice) noexcept {
    constexpr std::uint64_t kByVector = std::uint64_t{2} << 56;
    if (notice == Notice::vcpu_vector) {
        vcpu_vector_given = true;
        const abi::xen_hvm_evtchn_upcall_vector argument{
            raw(x86::percpu_of(receiver_cpu()).xen_vcpu_id), x86::lapic::kVectorXenVcpuUpcall, {}};
        return paravirt::xen_hypercall(abi::Hypercall::hvm_op, abi::HVMOP_set_evtchn_upcall_vector,
                                       reinterpret_cast<std::uint64_t>(&argument))
            .ok();
    }
    const abi::xen_hvm_param argument{abi::DOMID_SELF, 0, abi::HVM_PARAM_CALLBACK_IRQ,
                                      notice == Notice::callback_vector ? kByVector | x86::lapic::kVectorXenUpcall : 0};
    return paravirt::xen_hypercall(abi::Hypercall::hvm_op, abi::HVMOP_set_param,
                                   reinterpret_cast<std::uint64_t>(&argument))
        .ok();
}

void send_event() noexcept {
    if (shared.way.notice == Notice::event_callback)
        machine::interrupt_at(receiver_cpu(), machine::Level::higher_interrupt);
    else
        (void)event_ports::send(shared.port);
}

void send_all() noexcept {
    Random random(shared.seed);
    const Rounds rounds(milliseconds(options::command_line().duration_ms), kLeastEvents, kMostEvents);
    const auto skew = machine::skew_of(receiver_cpu()).ticks - machine::skew_of(machine::this_cpu()).ticks;
    for (std::uint32_t round = 1;; ++round) {
        shared.ready.await(round);
        spin_for(microseconds(20 + random.below(60))); // until the receiver is where it goes
        const bool last = rounds.is_last(round);
        if (last)
            shared.over.store(true, std::memory_order_relaxed); // published by the event
        shared.sent = machine::time_stamp();
        send_event();
        shared.taken.await(round);
        const auto ticks = shared.arrived.value - static_cast<std::uint64_t>(skew) - shared.sent.value;
        if (static_cast<std::int64_t>(ticks) > 0)
            shared.latency.record(ticks, receiver_cpu());
        else
            ++shared.unusable;
        workers::progress();
        if (last)
            return;
    }
}

void receive() noexcept {
    for (std::uint32_t round = 1; !shared.over.load(std::memory_order_relaxed); ++round) {
        shared.round = round;
        if (shared.way.receiver == Receiver::polling) {
            const auto state = B::disable_interrupts();
            clear_pending(shared.port);
            shared.ready.set(round);
            while (!is_pending(shared.port))
                (void)poll(shared.port, system_time() + kPollLimit);
            on_arrival(machine::time_stamp());
            B::restore_interrupts(state);
        } else {
            shared.ready.set(round);
            while (!shared.taken.reached(round))
                if (shared.way.receiver == Receiver::halted)
                    machine::idle_unless([](void*) { return shared.taken.reached(shared.round); }, nullptr);
                else
                    machine::relax();
        }
        workers::progress();
    }
}

void emit() noexcept {
    static constinit std::array<char, 16384> storage{};
    const auto ns = [](std::uint64_t ticks) { return clock::to_nanoseconds({ticks}).value; };
    const auto& latency = shared.latency;
    JsonLine json(storage, "event_latency");
    json.text("bench", "event_channels").text("form", name(paravirt::xen_events::form()));
    json.text("notice", shared.way.name).text("receiver", shared.way.state).number("count", latency.count());
    json.number("unusable", shared.unusable);
    json.number("p50_ns", ns(latency.percentile(5000))).number("p90_ns", ns(latency.percentile(9000)));
    json.number("p99_ns", ns(latency.percentile(9900))).number("max_ns", ns(latency.max()));
    json.number("skew_ns", ns(machine::skew_of(receiver_cpu()).error_ticks));
    json.begin_list("buckets");
    latency.for_each_bucket([&](std::uint64_t lowest, std::uint64_t n) { json.tuple(ns(lowest), n); });
    json.end();
    (void)json.emit();
}

/// False, with a verdict, if a vCPU stood still.
bool measure(test::TestContext& context, const Way& way) noexcept {
    shared.way = way;
    shared.ready.reset(), shared.taken.reset();
    shared.over.store(false, std::memory_order_relaxed);
    shared.latency.clear();
    shared.unusable = 0;
    clear_pending(shared.port);
    set_masked(shared.port, way.notice == Notice::poll || way.notice == Notice::event_callback);
    const auto body = [](std::uint32_t worker, void*) { worker == kSender ? send_all() : receive(); };
    if (!run_workers<B>(context, 2, body, nullptr, way.name))
        return false;
    emit();
    return true;
}

void run(test::TestContext& context) {
    const bool pv = x86::xen_pv::is_active();
    static constexpr machine::LevelHandlers kHandlers = {
        .interrupt = []() noexcept {},
        .higher_interrupt = []() noexcept { on_arrival(machine::time_stamp()); },
        .nmi = []() noexcept {}};
    machine::set_level_handlers(kHandlers);
    shared.seed = context.seed();
    shared.port = bind_ipi(receiver_cpu());
    if (shared.port == kNoPort)
        return context.error("EVTCHNOP_bind_ipi gives no port for CPU %u", raw(receiver_cpu()));
    if (!pv) {
        x86::traps::set_handler(x86::lapic::kVectorXenUpcall, on_upcall, false);
        x86::traps::set_handler(x86::lapic::kVectorXenVcpuUpcall, on_upcall);
    }
    std::uint32_t refused = 0;
    const auto ways = pv ? std::span<const Way>(kPvWays) : std::span<const Way>(kHvmWays);
    for (const auto& way : ways) {
        const bool needs_choice = way.notice == Notice::callback_vector || way.notice == Notice::vcpu_vector;
        if (needs_choice && !choose(way.notice)) {
            ++refused;
            log("# %s: Xen refuses it", way.name);
            continue;
        }
        if (!measure(context, way))
            break;
    }
    if (!pv) {
        (void)choose(Notice::poll);
        // The vCPU's own vector stays, and later tests take their events themselves.
        x86::traps::set_handler(x86::lapic::kVectorXenUpcall, nullptr, false);
        x86::traps::set_handler(x86::lapic::kVectorXenVcpuUpcall, [](x86::TrapFrame&) noexcept {});
    }
    close(shared.port);
    if (context.status() != test::Status::none)
        return;
    if (refused != 0)
        return context.error("%u ways of telling of an event are refused", refused);
    context.pass();
}

constexpr std::array kTests = {test::Test{
    .name = "bench.event_channels",
    .backend = B::kName,
    .claim = "an event reaches a vCPU that polls, runs or is halted, by every way of telling; figures for each",
    .min_cpus = 2,
    .needs = test::Backend::xen,
    .run = run,
    .on_request = true}};
constinit const test::TestGroup event_channels_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(event_channels_group);

} // namespace spinkick::bench
