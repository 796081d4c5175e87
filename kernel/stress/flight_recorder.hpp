// SPDX-License-Identifier: BSD-2-Clause
//
// The flight recorder: the last events of each CPU, with their times, for whoever has to explain a stall or wants to
// see how a lock was handed around. One ring per CPU; only that CPU writes it, interrupts of it included, and nobody
// waits for anybody.
//
//   writer:  take a number; mark the record as being written; S time; S what, with the number's lap
//   reader:  L what; L time; L what: the same lap twice is a whole record, anything else was overwritten meanwhile
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernel/sync/flight_events.hpp"
#include "kernel/types.hpp"

namespace spinkick::stress {

/// Whether events are kept. Switched while tests run: relaxed everywhere, an event more or less changes nothing.
inline constinit std::atomic<bool> flight_recording{true};

/// For as long as it lives: no events, for measurements; or events even where they are dear.
class FlightRecording {
  public:
    explicit FlightRecording(bool on) noexcept : before_(flight_recording.exchange(on, std::memory_order_relaxed)) {}
    ~FlightRecording() { flight_recording.store(before_, std::memory_order_relaxed); }
    FlightRecording(const FlightRecording&) = delete;
    FlightRecording& operator=(const FlightRecording&) = delete;

  private:
    bool before_;
};

/// An event as a reader sees it.
struct FlightRecord {
    Tsc time{}; ///< of the CPU that recorded it
    sync::FlightEvent event = sync::FlightEvent::none;
    std::uint32_t argument = 0;
};

class FlightRing {
  public:
    static constexpr std::uint64_t kRecords = 256;

    constexpr FlightRing() noexcept = default;
    FlightRing(const FlightRing&) = delete;
    FlightRing& operator=(const FlightRing&) = delete;

    /// `number` counts the events of this CPU from 0; each is used once, whatever interrupts what.
    void put(std::uint64_t number, Tsc time, sync::FlightEvent event, std::uint32_t argument) noexcept {
        auto& slot = slots_[number % kRecords];
        slot.what.store(0, std::memory_order_relaxed);
        slot.time.store(time.value, std::memory_order_release); // not before the mark
        slot.what.store(argument | std::uint64_t{static_cast<std::uint8_t>(event)} << kEventShift |
                            lap_of(number) << kLapShift,
                        std::memory_order_release); // not before the time
    }

    /// The event with this number; nothing if it was overwritten, or is being written.
    [[nodiscard]] std::optional<FlightRecord> get(std::uint64_t number) const noexcept {
        const auto& slot = slots_[number % kRecords];
        const auto what = slot.what.load(std::memory_order_acquire); // then the time
        const auto time = slot.time.load(std::memory_order_acquire); // then once more
        if (what == 0 || what >> kLapShift != lap_of(number) || slot.what.load(std::memory_order_relaxed) != what)
            return std::nullopt;
        return FlightRecord{
            {time}, static_cast<sync::FlightEvent>(what >> kEventShift & 0xff), static_cast<std::uint32_t>(what)};
    }

  private:
    // what: lap 63:40, event 39:32, argument 31:0
    static constexpr unsigned kEventShift = 32, kLapShift = 40;
    static constexpr std::uint64_t lap_of(std::uint64_t number) noexcept {
        return (number / kRecords + 1) & ((1u << 24) - 1);
    }

    struct Slot {
        std::atomic<std::uint64_t> time{0};
        std::atomic<std::uint64_t> what{0};
    };
    std::array<Slot, kRecords> slots_{};
};
static_assert(sizeof(FlightRing) == 4096, "one page holds a ring");

/// The ring of a CPU and how many events it has seen.
struct FlightLog {
    const FlightRing* ring = nullptr; ///< nullptr: none
    std::uint64_t written = 0;

    /// Calls f(FlightRecord) for the last `most` events that are still there, oldest first.
    template <class F>
    void for_each_of_last(std::uint64_t most, F&& f) const noexcept {
        if (ring == nullptr)
            return;
        const auto kept = written < FlightRing::kRecords ? written : FlightRing::kRecords;
        for (auto number = written - (kept < most ? kept : most); number != written; ++number)
            if (const auto record = ring->get(number))
                f(*record);
    }
};

} // namespace spinkick::stress
