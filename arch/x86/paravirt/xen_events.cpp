// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/xen_events.hpp"

#include "arch/x86/paravirt/xen.hpp"

namespace spinkick::paravirt::xen_events {
namespace {

using namespace xen_abi;

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::size_t kWordsOfPage = kPageBytes / sizeof(std::uint32_t);
static_assert(kPorts % kWordsOfPage == 0, "as many ports as the two-level form, in whole pages");

constinit std::atomic<EventChannels> current{EventChannels::two_level};

/// Xen reads and writes these, from its own mapping.
struct alignas(kPageBytes) EventArray {
    std::array<std::uint32_t, kPorts> words;
};
constinit EventArray array{};

/// Never across a page.
struct alignas(128) ControlSlot {
    evtchn_fifo_control_block block;
};
constinit std::array<ControlSlot, kMaxCpus> controls{};

/// What this side remembers: where each queue goes on.
struct alignas(64) Queues {
    std::array<std::uint32_t, EVTCHN_FIFO_MAX_QUEUES> heads{};
    std::atomic<bool> known{false}; ///< to Xen
};
constinit std::array<Queues, kMaxCpus> queues{};

std::uint64_t address_of(const void* object) noexcept { return reinterpret_cast<std::uint64_t>(object); }

std::atomic_ref<std::uint64_t> pending_bits(std::uint32_t port) noexcept {
    return std::atomic_ref(Xen::event_page().evtchn_pending[port / 64 % 64]);
}
std::atomic_ref<std::uint64_t> mask_bits(std::uint32_t port) noexcept {
    return std::atomic_ref(Xen::event_page().evtchn_mask[port / 64 % 64]);
}
constexpr std::uint64_t bit_of(std::uint32_t port) noexcept { return std::uint64_t{1} << (port % 64); }

std::atomic_ref<std::uint32_t> word_of(std::uint32_t port) noexcept {
    return std::atomic_ref(array.words[port % kPorts]);
}
std::atomic_ref<std::uint32_t> ready_of(CpuId cpu) noexcept {
    return std::atomic_ref(controls[index(cpu)].block.ready);
}

bool is_fifo() noexcept { return form() == EventChannels::fifo; }

HypercallResult give_control_block(CpuId cpu, XenVcpuId vcpu) noexcept {
    const auto& block = controls[index(cpu)].block;
    const auto place = Xen::address_for_xen(&block);
    evtchn_init_control argument{place / kPageBytes, static_cast<std::uint32_t>(place % kPageBytes), raw(vcpu), 0, {}};
    const auto result = xen_hypercall(Hypercall::event_channel_op, EVTCHNOP_init_control, address_of(&argument));
    if (result.ok())
        queues[index(cpu)].known.store(true, std::memory_order_relaxed); // its own CPU's, or nobody's yet
    return result;
}

} // namespace

EventChannels form() noexcept { return current.load(std::memory_order_relaxed); } // changes once, at boot

// seq_cst in all that follows: these words are Xen's too, and what is claimed about them above is an order.

void mask_all() noexcept {
    for (auto& word : Xen::event_page().evtchn_mask)
        std::atomic_ref<std::uint64_t>(word).store(~std::uint64_t{0}, std::memory_order_seq_cst);
}

HypercallResult use_fifo(XenVcpuId vcpu) noexcept {
    for (std::uint32_t port = 0; port < kPorts; ++port)
        word_of(port).store(is_masked(port) ? EVTCHN_FIFO_MASKED : 0, std::memory_order_seq_cst);
    auto result = give_control_block(CpuId{0}, vcpu);
    if (!result.ok())
        return result;
    current.store(EventChannels::fifo, std::memory_order_relaxed); // from here on Xen knows nothing else
    for (std::size_t page = 0; page < kPorts / kWordsOfPage && result.ok(); ++page) {
        const evtchn_expand_array argument{Xen::address_for_xen(&array.words[page * kWordsOfPage]) / kPageBytes};
        result = xen_hypercall(Hypercall::event_channel_op, EVTCHNOP_expand_array, address_of(&argument));
    }
    return result;
}

HypercallResult add_vcpu(CpuId cpu, XenVcpuId vcpu) noexcept {
    if (!is_fifo() || queues[index(cpu)].known.load(std::memory_order_relaxed))
        return {};
    return give_control_block(cpu, vcpu);
}

bool is_pending(std::uint32_t port) noexcept {
    if (is_fifo())
        return (word_of(port).load(std::memory_order_seq_cst) & EVTCHN_FIFO_PENDING) != 0;
    return (pending_bits(port).load(std::memory_order_seq_cst) & bit_of(port)) != 0;
}

bool is_masked(std::uint32_t port) noexcept {
    if (is_fifo())
        return (word_of(port).load(std::memory_order_seq_cst) & EVTCHN_FIFO_MASKED) != 0;
    return (mask_bits(port).load(std::memory_order_seq_cst) & bit_of(port)) != 0;
}

bool clear_pending(std::uint32_t port) noexcept {
    if (is_fifo())
        return (word_of(port).fetch_and(~EVTCHN_FIFO_PENDING, std::memory_order_seq_cst) & EVTCHN_FIFO_PENDING) != 0;
    return (pending_bits(port).fetch_and(~bit_of(port), std::memory_order_seq_cst) & bit_of(port)) != 0;
}

void mask(std::uint32_t port) noexcept {
    if (is_fifo())
        word_of(port).fetch_or(EVTCHN_FIFO_MASKED, std::memory_order_seq_cst);
    else
        mask_bits(port).fetch_or(bit_of(port), std::memory_order_seq_cst);
}

void unmask(std::uint32_t port) noexcept {
    if (is_fifo())
        word_of(port).fetch_and(~EVTCHN_FIFO_MASKED, std::memory_order_seq_cst);
    else
        mask_bits(port).fetch_and(~bit_of(port), std::memory_order_seq_cst);
}

bool is_announced(CpuId cpu, const volatile vcpu_info& info, std::uint32_t port) noexcept {
    if (is_fifo())
        return ready_of(cpu).load(std::memory_order_seq_cst) != 0 &&
               (word_of(port).load(std::memory_order_seq_cst) & EVTCHN_FIFO_LINKED) != 0;
    const std::atomic_ref selector(const_cast<std::uint64_t&>(info.evtchn_pending_sel));
    return (selector.load(std::memory_order_seq_cst) >> (port / 64) & 1) != 0;
}

void announce_again(CpuId cpu, vcpu_info& info) noexcept {
    // A queue that is empty by now gives its last port once more, which is then not pending.
    if (is_fifo())
        ready_of(cpu).fetch_or(1u << EVTCHN_FIFO_PRIORITY_DEFAULT, std::memory_order_seq_cst);
    else
        std::atomic_ref(info.evtchn_pending_sel).store(~std::uint64_t{0}, std::memory_order_seq_cst);
    std::atomic_ref(info.evtchn_upcall_pending).store(1, std::memory_order_seq_cst);
}

std::uint64_t detail::take_selector(vcpu_info& info) noexcept {
    return std::atomic_ref(info.evtchn_pending_sel).exchange(0, std::memory_order_seq_cst);
}

std::uint64_t detail::unmasked_and_pending(std::size_t word) noexcept {
    const auto port = static_cast<std::uint32_t>(word * 64);
    return pending_bits(port).load(std::memory_order_seq_cst) & ~mask_bits(port).load(std::memory_order_seq_cst);
}

std::uint32_t detail::dequeue(CpuId cpu, std::uint32_t& ready) noexcept {
    ready |= ready_of(cpu).exchange(0, std::memory_order_seq_cst);
    if (ready == 0)
        return 0;
    const auto queue = static_cast<std::size_t>(std::countr_zero(ready));
    auto& head = queues[index(cpu)].heads[queue];
    if (head == 0) // the queue was empty: Xen has said where it begins
        head = std::atomic_ref(controls[index(cpu)].block.head[queue]).load(std::memory_order_seq_cst);
    const auto port = head;
    auto word = word_of(port);
    auto before = word.load(std::memory_order_seq_cst);
    // Xen links the next one to this word as long as it is LINKED: both go in one step, or a link would be lost.
    while (!word.compare_exchange_weak(before, before & ~(EVTCHN_FIFO_LINKED | EVTCHN_FIFO_LINK_MASK),
                                       std::memory_order_seq_cst))
        ;
    head = before & EVTCHN_FIFO_LINK_MASK;
    if (head == 0)
        ready &= ~(1u << queue);
    return port;
}

} // namespace spinkick::paravirt::xen_events
