// SPDX-License-Identifier: BSD-2-Clause
#include "drivers/xen_console_ring.hpp"

#include <algorithm>
#include <atomic>

#include "kernel/text.hpp"

namespace spinkick::drivers {
namespace {

constexpr std::uint32_t kBytes = sizeof(xencons_interface::out);
static_assert((kBytes & (kBytes - 1)) == 0, "an index is taken modulo the size by a mask");

} // namespace

/// Bytes that may be written now. The page belongs to the other side too: a distance that cannot be ends the ring.
std::size_t XenConsoleRing::space() noexcept {
    // Acquire: the reader has taken the bytes before their places are written again. Only this side writes out_prod.
    const auto taken = std::atomic_ref(page_->out_cons).load(std::memory_order_acquire);
    const auto used = std::atomic_ref(page_->out_prod).load(std::memory_order_relaxed) - taken;
    if (used > kBytes) {
        broken_ = true;
        return 0;
    }
    return kBytes - used;
}

bool XenConsoleRing::wait_for_space(std::size_t wanted) noexcept {
    const auto bound = reader_stalled_ ? kImpatient : kPatient;
    const auto begin = machine_.ticks();
    for (;;) {
        const auto now = space();
        if (now >= wanted && !broken_) {
            reader_stalled_ = false;
            return true;
        }
        if (broken_ || machine_.ticks() - begin >= bound) {
            reader_stalled_ = true;
            return false;
        }
        machine_.rest();
    }
}

/// All of `bytes`, which fit.
void XenConsoleRing::put(std::string_view bytes) noexcept {
    std::atomic_ref producer(page_->out_prod);
    auto at = producer.load(std::memory_order_relaxed);
    for (const char c : bytes)
        page_->out[at++ & (kBytes - 1)] = c;
    producer.store(at, std::memory_order_release); // the bytes come with it
}

bool XenConsoleRing::say_what_was_lost() noexcept {
    std::array<char, 80> storage{};
    TextBuffer text(storage);
    format(text, "\n# console: %llu bytes lost: nobody took them in time\n",
           static_cast<unsigned long long>(lost_ - lost_said_));
    if (!wait_for_space(text.size()))
        return false;
    put(text.view());
    lost_said_ = lost_;
    return true;
}

void XenConsoleRing::write(std::string_view bytes) noexcept {
    if (page_ == nullptr || broken_) {
        lost_ += bytes.size();
        return;
    }
    const bool ends_line = !bytes.empty() && bytes.back() == '\n';
    if (lost_ != lost_said_ && !say_what_was_lost()) {
        lost_ += bytes.size();
        return;
    }
    while (!bytes.empty()) {
        auto room = space();
        if (room == 0) {
            machine_.notify(); // the reader may not know yet of what it has to take
            if (!wait_for_space(1)) {
                lost_ += bytes.size();
                return;
            }
            room = space();
        }
        const auto count = std::min(room, bytes.size());
        put({bytes.data(), count});
        bytes.remove_prefix(count);
    }
    if (ends_line)
        machine_.notify();
}

int XenConsoleRing::read() noexcept {
    if (page_ == nullptr || broken_)
        return -1;
    constexpr std::uint32_t kInBytes = sizeof(xencons_interface::in);
    std::atomic_ref consumer(page_->in_cons);
    const auto at = consumer.load(std::memory_order_relaxed); // only this side writes it
    // acquire: the bytes came before the index
    const auto waiting = std::atomic_ref(page_->in_prod).load(std::memory_order_acquire) - at;
    if (waiting == 0 || waiting > kInBytes) // more than there is room for: nothing of that can be believed
        return -1;
    const auto byte = static_cast<unsigned char>(page_->in[at & (kInBytes - 1)]);
    consumer.store(at + 1, std::memory_order_release); // its place is free when this is seen
    return byte;
}

void XenConsoleRing::drain() noexcept {
    if (page_ == nullptr || broken_)
        return;
    machine_.notify();
    (void)wait_for_space(kBytes);
}

} // namespace spinkick::drivers
