// SPDX-License-Identifier: BSD-2-Clause
#include "drivers/uart16550.hpp"

#include <algorithm>

#include "arch/x86/insn.hpp"

namespace spinkick::drivers {
namespace {

enum Offset : std::uint16_t {
    kData = 0,
    kInterruptEnable = 1,
    kFifoControl = 2,
    kLineControl = 3,
    kModemControl = 4,
    kLineStatus = 5,
    kScratch = 7
};
constexpr std::uint8_t kStatusDataReady = 0x01;
constexpr std::uint8_t kStatusAbsent = 0xff;        // no device: every bit reads as one
constexpr std::uint8_t kStatusTransmitEmpty = 0x20; // the FIFO takes 16 bytes
constexpr std::uint8_t kStatusIdle = 0x40;          // and the shift register is empty too
constexpr std::size_t kFifoBytes = 16;
// In TSC ticks, by a clock of at least 1 GHz: a poll may be an exit of 20 us or a port read of 1 us. A reader that
// stalls for seconds loses nothing.
constexpr Tsc kPatient{20'000'000'000};
constexpr Tsc kImpatient{1'000'000};

std::uint16_t port(std::uint16_t base, Offset offset) noexcept { return static_cast<std::uint16_t>(base + offset); }

} // namespace

bool Uart16550::init() noexcept {
    for (const std::uint8_t pattern : {std::uint8_t{0x5a}, std::uint8_t{0xa5}}) {
        x86::outb(port(base_, kScratch), pattern);
        if (x86::inb(port(base_, kScratch)) != pattern)
            return false;
    }
    x86::outb(port(base_, kInterruptEnable), 0);
    x86::outb(port(base_, kLineControl), 0x80); // divisor latch
    x86::outb(port(base_, kData), 1);
    x86::outb(port(base_, kInterruptEnable), 0);
    x86::outb(port(base_, kLineControl), 0x03); // 8n1
    x86::outb(port(base_, kFifoControl), 0x07); // enabled, both cleared
    x86::outb(port(base_, kModemControl), 0x03);
    return true;
}

bool Uart16550::wait_for(std::uint8_t status_bit) noexcept {
    const auto bound = lost_ == 0 ? kPatient : kImpatient;
    const auto begin = x86::rdtsc();
    do {
        if ((x86::inb(port(base_, kLineStatus)) & status_bit) != 0)
            return true;
        x86::pause();
    } while (x86::rdtsc() - begin < bound);
    return false;
}

void Uart16550::write(std::string_view bytes) noexcept {
    for (std::size_t done = 0; done < bytes.size();) {
        const auto count = std::min(kFifoBytes, bytes.size() - done);
        if (!wait_for(kStatusTransmitEmpty)) {
            lost_ += bytes.size() - done;
            return;
        }
        x86::outsb(port(base_, kData), bytes.data() + done, count);
        done += count;
    }
}

int Uart16550::read() noexcept {
    const auto status = x86::inb(port(base_, kLineStatus));
    if (status == kStatusAbsent || (status & kStatusDataReady) == 0)
        return -1;
    return x86::inb(port(base_, kData));
}

void Uart16550::drain() noexcept { (void)wait_for(kStatusIdle); }

} // namespace spinkick::drivers
