// SPDX-License-Identifier: BSD-2-Clause
//
// paravirt: no event is lost between port, selector and flag. Two vCPUs send to a third one, each to a port of its own
// in one word, the next time when the event before has been taken. The receiver takes events in the order of the
// protocol (flag, selector, ports) and sets and clears its upcall mask byte all the time, by a plain store of that byte
// alone. An event that is pending on an unmasked port while flag or selector say nothing has been lost for good: on
// that, a verdict with all three levels.
//
// In an HVM guest the receiver plays the upcall itself; there the mask byte does nothing, and must do nothing. In a PV
// guest it is the interrupt mask, and the events are the test's interrupts, taken by the kernel's own handler.
#include "arch/x86/lapic.hpp"
#include "tests/paravirt/event_ports.hpp"
#include "tests/paravirt/pair.hpp"

namespace spinkick::paravirt_tests {
namespace {

using B = paravirt::Xen;
using namespace event_ports;

constexpr std::uint32_t kReceiver = 1;
constexpr std::uint32_t kSenders = 2; ///< workers 0 and 2, if there are three
constexpr std::uint32_t kLeast = 64;
constexpr Nanoseconds kLimit = seconds(1);

struct alignas(64) Sender {
    std::uint32_t port = kNoPort;
    std::atomic<std::uint32_t> taken{0};
    std::uint32_t sent = 0;
    bool lost = false;
};

struct Shared {
    std::array<Sender, kSenders> senders{};
    std::atomic<std::uint32_t> sending{0};
    std::uint32_t count = 0;
    std::uint64_t seed = 0;
    // All three levels, as they were when an event was missed.
    bool port_was_pending = false, was_announced = false, flag_was_set = false;
};
constinit Shared shared{};

CpuId receiver_cpu() noexcept { return workers::cpu_of(kReceiver, first_cpu(shared.count + 1)); }

/// What an upcall handler does (HVM).
void take_events(CpuId self) noexcept {
    if (!take_upcall_flag(self))
        return;
    paravirt::xen_events::take_announced(self, info_of(self), [](std::uint32_t port) noexcept {
        for (auto& sender : shared.senders) {
            if (sender.port != port)
                continue;
            clear_pending(port);
            sender.taken.fetch_add(1, std::memory_order_release); // the bit is clear when this is seen
        }
    });
}

void receive() noexcept {
    Random random(shared.seed + kReceiver);
    const auto self = B::this_cpu();
    volatile auto& mask = B::info_of(self)->evtchn_upcall_mask;
    while (shared.sending.load(std::memory_order_acquire) != 0) {
        if (x86::xen_pv::is_active()) {
            const auto state = B::disable_interrupts();
            if (random.below(4) == 0)
                machine::relax();
            B::restore_interrupts(state);
        } else {
            mask = static_cast<std::uint8_t>(random.below(2));
            take_events(self);
        }
        workers::progress();
    }
    if (!x86::xen_pv::is_active())
        mask = 0;
}

void send_all(std::size_t number) noexcept {
    auto& sender = shared.senders[number];
    Random random(shared.seed + 2 * number);
    const Rounds rounds(milliseconds(30), kLeast);
    for (std::uint32_t round = 1; !rounds.is_last(round); ++round) {
        for (auto n = random.below(64); n-- > 0;)
            machine::relax();
        sender.sent = round;
        if (x86::xen_pv::is_active())
            machine::interrupt_at(receiver_cpu(),
                                  number == 0 ? machine::Level::interrupt : machine::Level::higher_interrupt);
        else
            (void)event_ports::send(sender.port);
        const clock::Deadline deadline(kLimit);
        while (sender.taken.load(std::memory_order_acquire) < round && !deadline.passed())
            machine::relax();
        workers::progress();
        if (sender.taken.load(std::memory_order_acquire) >= round)
            continue;
        sender.lost = true;
        if (sender.port != kNoPort)
            shared.port_was_pending = is_pending(sender.port);
        shared.was_announced = is_announced(receiver_cpu(), sender.port);
        shared.flag_was_set = upcall_flag(receiver_cpu());
        break;
    }
    shared.sending.fetch_sub(1, std::memory_order_release);
}

void work(std::uint32_t worker, void*) {
    if (worker == kReceiver)
        return receive();
    send_all(worker == 0 ? 0 : 1);
}

void on_event(std::size_t number) noexcept { shared.senders[number].taken.fetch_add(1, std::memory_order_release); }

void run(test::TestContext& context) {
    if (vcpu_vector_given)
        return context.skip("%s", kVectorFact);
    static constexpr machine::LevelHandlers kHandlers = {.interrupt = []() noexcept { on_event(0); },
                                                         .higher_interrupt = []() noexcept { on_event(1); },
                                                         .nmi = []() noexcept {}};
    machine::set_level_handlers(kHandlers);
    shared.count = workers::available(0) >= 3 ? 2 : 1;
    shared.seed = context.seed();
    shared.sending.store(shared.count, std::memory_order_relaxed);
    for (auto& sender : shared.senders) {
        sender.port = kNoPort;
        sender.taken.store(0, std::memory_order_relaxed);
        sender.sent = 0;
        sender.lost = false;
    }
    const auto close_ports = [] {
        for (auto& sender : shared.senders)
            close(sender.port);
        if (!x86::xen_pv::is_active())
            forget_announced(receiver_cpu());
    };
    for (std::uint32_t i = 0; i < shared.count && !x86::xen_pv::is_active(); ++i) {
        shared.senders[i].port = bind_ipi(receiver_cpu());
        if (shared.senders[i].port == kNoPort) {
            close_ports();
            return context.error("EVTCHNOP_bind_ipi gives no port for CPU %u", raw(receiver_cpu()));
        }
        set_masked(shared.senders[i].port, false);
    }
    const bool ended = run_workers<B>(context, shared.count + 1, work, nullptr, "an event stalled the machine");
    close_ports();
    if (!ended)
        return;
    for (const auto& sender : shared.senders)
        if (sender.lost)
            context.fail("event %u of sender %zu is not seen: port %u %s, %sannounced, flag %u", sender.sent,
                         static_cast<std::size_t>(&sender - shared.senders.data()), sender.port,
                         shared.port_was_pending ? "pending" : "not pending", shared.was_announced ? "" : "not ",
                         shared.flag_was_set ? 1u : 0u);
        else if (sender.taken.load(std::memory_order_relaxed) != sender.sent)
            context.fail("%u events sent, %u taken", sender.sent, sender.taken.load(std::memory_order_relaxed));
    if (context.status() == test::Status::none)
        context.pass();
}

constexpr std::array kTests = {test::Test{
    .name = "paravirt.upcall_mask_loses_no_event",
    .backend = B::kName,
    .claim = "an event that is sent while the receiver changes its upcall mask and takes another one is seen",
    .min_cpus = 2,
    .needs = test::Backend::xen,
    .run = run}};
constinit const test::TestGroup xen_upcall_group{kTests};

} // namespace

SPINKICK_REGISTER_TESTS(xen_upcall_group);

} // namespace spinkick::paravirt_tests
