// SPDX-License-Identifier: BSD-2-Clause
//
// A 16550 UART, polled (National Semiconductor PC16550D). It may be absent, or present and never drained: it is
// probed by its scratch register and every poll of its status is bounded.
#pragma once

#include <cstdint>
#include <string_view>

namespace spinkick::drivers {

class Uart16550 {
  public:
    explicit constexpr Uart16550(std::uint16_t base) noexcept : base_(base) {}

    /// Programs 115200 8n1 with FIFO. False if no UART answers at this port.
    [[nodiscard]] bool init() noexcept;
    /// Writes all bytes, a FIFO's worth for each look at the status. Bytes that a full transmitter refuses beyond the
    /// bound are counted as lost, and after the first loss the bound is short: a dead reader must not stop the run.
    void write(std::string_view bytes) noexcept;
    /// Waits, bounded, until the last bit has left: before the machine is switched off.
    void drain() noexcept;
    /// The next byte that came in; -1 for none. What the 16 bytes of the FIFO do not hold is lost in the line.
    [[nodiscard]] int read() noexcept;
    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

  private:
    [[nodiscard]] bool wait_for(std::uint8_t status_bit) noexcept;

    std::uint16_t base_;
    std::uint64_t lost_ = 0;
};

} // namespace spinkick::drivers
