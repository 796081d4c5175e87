// SPDX-License-Identifier: BSD-2-Clause
#include "drivers/console.hpp"

#include <algorithm>
#include <atomic>

#include "arch/x86/interrupts.hpp"
#include "arch/x86/percpu.hpp"
#include "drivers/debug_port.hpp"
#include "drivers/uart16550.hpp"
#include "kernel/clock.hpp"
#include "kernel/console.hpp"

namespace spinkick {
namespace drivers::console {
namespace {

constexpr std::uint16_t kCom1 = 0x3f8;

constinit Uart16550 uart{kCom1};
constinit Device current{};
constinit std::atomic<bool> broken{false};

// The console's own lock is none of the locks under test, and plain on purpose: it must work while those are wedged.
constinit std::atomic<std::uint32_t> locked{0};

constexpr Device kUart{[](std::string_view bytes) noexcept { uart.write(bytes); }, "uart 0x3f8",
                       []() noexcept { uart.drain(); }, []() noexcept { return uart.lost(); },
                       []() noexcept { return uart.read(); }};
constexpr Device kDebugConsole{[](std::string_view bytes) noexcept { debug_port_write(bytes); }, "port 0xe9"};

/// True if this CPU has the lock now. Gives up after a time that no live writer needs.
bool acquire() noexcept {
    const clock::Deadline deadline(seconds(30));
    constexpr std::uint32_t kLongestRest = 1u << 13;
    for (std::uint32_t rest = 1;; rest = std::min(rest * 2, kLongestRest)) {
        // Acquire: the writer before is done with the device. The load keeps waiters off the line while it is held.
        if (locked.load(std::memory_order_relaxed) == 0 && locked.exchange(1, std::memory_order_acquire) == 0)
            return true;
        if (broken.load(std::memory_order_relaxed) || deadline.passed())
            return false;
        x86::pause();
        // Under emulation PAUSE takes the lock that the writer's port accesses need too; so most of the wait is
        // counted.
        for (std::uint32_t i = 0; i < rest; ++i)
            std::atomic_signal_fence(std::memory_order_seq_cst); // keeps the loop, costs nothing
    }
}

} // namespace

bool init() noexcept {
    if (uart.init())
        use(kUart);
    else if (debug_port_present())
        use(kDebugConsole);
    return current.write != nullptr;
}

void use(const Device& device) noexcept { current = device; }
const char* name() noexcept { return current.name; }
bool has_uart() noexcept { return current.write == kUart.write; }

void drain() noexcept {
    if (current.drain != nullptr)
        current.drain();
}

void break_lock() noexcept { broken.store(true, std::memory_order_relaxed); }
std::uint64_t lost_bytes() noexcept { return current.lost == nullptr ? 0 : current.lost(); }

} // namespace drivers::console

void console_write_line(std::string_view line) noexcept {
    namespace console = drivers::console;
    if (console::current.write == nullptr)
        return;
    auto& block = x86::percpu();
    // An NMI, or a fault inside the driver, on the CPU that is writing: waiting for itself would be for ever. Its line
    // goes out between two FIFO fills of the interrupted one; only a dying kernel gets here.
    const bool nested = block.console_held;
    const auto state = x86::disable_interrupts();
    block.console_held = true; // before the lock: a rescue between the two would leave it locked
    const bool owned = !nested && console::acquire();
    console::current.write(line);
    console::current.write("\n");
    if (owned)
        console::locked.store(0, std::memory_order_release); // the device is free when this is seen
    if (!nested)
        block.console_held = false;
    x86::restore_interrupts(state);
}

std::optional<char> console_read() noexcept {
    // Without the console's lock: reading and writing touch different registers, and nobody else reads.
    const auto& device = drivers::console::current;
    const int byte = device.read == nullptr ? -1 : device.read();
    return byte < 0 ? std::nullopt : std::optional{static_cast<char>(byte)};
}

} // namespace spinkick
