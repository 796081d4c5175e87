// SPDX-License-Identifier: BSD-2-Clause
//
// A lock of any type that tells the flight recorder and the lock tracking what happens at its border. Tests use it, so
// that a stall can be explained; what is measured is the plain lock.
#pragma once

#include <cstdint>

#include "kernel/stress/lock_tracking.hpp"
#include "kernel/sync/concepts.hpp"

namespace spinkick::stress {

template <class T>
struct PlainOf {
    using type = T;
};
template <class T>
requires requires { typename T::Plain; }
struct PlainOf<T> {
    using type = typename T::Plain;
};

/// What a dump may show of a lock of type T, traced or plain.
template <class T>
[[nodiscard]] const LockKind& kind_of() noexcept {
    static constexpr LockKind kKind = [] {
        LockKind kind{.name = T::kName,
                      .backend = T::Machine::kName,
                      .layout = {},
                      .word = [](const void* lock) noexcept { return static_cast<const T*>(lock)->word(); },
                      .waiter = nullptr};
        using P = typename PlainOf<T>::type;
        if constexpr (requires { P::kWord; })
            kind.layout = P::kWord;
        if constexpr (requires(CpuId cpu) { P::waiter(cpu); })
            kind.waiter = P::waiter;
        return kind;
    }();
    return kKind;
}

template <sync::Lock L>
class Traced {
  public:
    using Machine = typename L::Machine;
    using Plain = L;
    static constexpr const char* kName = L::kName;
    static constexpr bool kIsFifo = L::kIsFifo;
    static constexpr bool kExcludes = L::kExcludes;
    static constexpr bool kSleeps = L::kSleeps;

    constexpr Traced() noexcept = default;
    Traced(const Traced&) = delete;
    Traced& operator=(const Traced&) = delete;

    // Their code is in traced_lock_code.hpp, and that of the kernel's locks is compiled once: a dozen of tests for each
    // of them would otherwise be compiled with all locks in full.
    void lock() noexcept;
    [[nodiscard]] bool try_lock() noexcept;
    void unlock() noexcept;

    static void reset_cpu(CpuId cpu) noexcept {
        L::reset_cpu(cpu);
        lock_tracking.of(cpu).forget();
    }

    [[nodiscard]] std::uint64_t word() const noexcept { return lock_.word(); }

  private:
    /// Locks lie in the image, whose addresses differ in their low half.
    [[nodiscard]] std::uint32_t id() const noexcept {
        return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(this));
    }

    L lock_;
};

} // namespace spinkick::stress
