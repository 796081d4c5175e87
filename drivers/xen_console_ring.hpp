// SPDX-License-Identifier: BSD-2-Clause
//
// The console of a Xen guest that is not dom0: a page that the guest shares with xenconsoled (Xen
// xen/include/public/io/console.h). Nobody may read at the other end, and what stands in the page may be anything:
// every wait is bounded, and every index is looked at before it is used.
//
//   guest:  bytes into out[prod..] ; out_prod (release) ; event          xenconsoled:  out_prod (acquire) ; bytes ;
//   out_cons A byte's place is written again only after out_cons (acquire) has passed it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace spinkick::drivers {

/// As both sides see it. Indices run freely and are taken modulo the size of their half.
struct xencons_interface {
    std::array<char, 1024> in;
    std::array<char, 2048> out;
    std::uint32_t in_cons, in_prod;
    std::uint32_t out_cons, out_prod;
    std::uint8_t connection; ///< 1: nobody has attached yet (only if the back end knows of it)
};
static_assert(std::is_standard_layout_v<xencons_interface> && offsetof(xencons_interface, out) == 1024 &&
              offsetof(xencons_interface, in_cons) == 3072 && offsetof(xencons_interface, out_cons) == 3080 &&
              offsetof(xencons_interface, out_prod) == 3084 && offsetof(xencons_interface, connection) == 3088);

class XenConsoleRing {
  public:
    /// What the ring needs of the machine, so that a test can stand in for it.
    struct Machine {
        void (*notify)() noexcept;         ///< the event that wakes the reader
        void (*rest)() noexcept;           ///< gives up the CPU for a while
        std::uint64_t (*ticks)() noexcept; ///< a counter of at least 1 GHz
    };
    /// Bounds in ticks. The reader empties the ring in bursts of 200 ms, and its machine may be loaded; once it has
    /// not read for so long, it is waited for only as long as a look costs, until it reads again.
    static constexpr std::uint64_t kPatient = 10'000'000'000;
    static constexpr std::uint64_t kImpatient = 1'000'000;

    explicit constexpr XenConsoleRing(Machine machine) noexcept : machine_(machine) {}

    /// From here on the page is at this address; nullptr: nowhere, bytes are lost until it is somewhere again.
    void attach(xencons_interface* page) noexcept { page_ = page; }
    [[nodiscard]] bool is_attached() const noexcept { return page_ != nullptr; }

    /// Writes all bytes, and wakes the reader at the end of a line. What does not fit in time is dropped and counted;
    /// a line says so once the reader reads again.
    void write(std::string_view bytes) noexcept;
    /// The next byte that the other end has sent; -1 for none.
    [[nodiscard]] int read() noexcept;
    /// Waits, bounded, until the reader has everything.
    void drain() noexcept;

    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }
    /// The indices in the page are impossible: nothing is written any more.
    [[nodiscard]] bool is_broken() const noexcept { return broken_; }

  private:
    [[nodiscard]] std::size_t space() noexcept;
    [[nodiscard]] bool wait_for_space(std::size_t wanted) noexcept;
    void put(std::string_view bytes) noexcept;
    [[nodiscard]] bool say_what_was_lost() noexcept;

    Machine machine_;
    xencons_interface* page_ = nullptr;
    std::uint64_t lost_ = 0;
    std::uint64_t lost_said_ = 0;
    bool reader_stalled_ = false;
    bool broken_ = false;
};

} // namespace spinkick::drivers
