// SPDX-License-Identifier: BSD-2-Clause
//
// The lock that is none: the floor under every measurement. What a benchmark still reports with it is the benchmark's
// own. It excludes nobody, so the exclusion tests must report it.
#pragma once

#include <cstdint>

#include "kernel/sync/concepts.hpp"

namespace spinkick::sync {

template <LockMachine B>
class NullLock {
  public:
    using Machine = B;
    static constexpr const char* kName = "null";
    static constexpr bool kIsFifo = false;
    static constexpr bool kExcludes = false;
    static constexpr bool kSleeps = false;

    constexpr NullLock() noexcept = default;
    NullLock(const NullLock&) = delete;
    NullLock& operator=(const NullLock&) = delete;

    void lock() noexcept {}
    [[nodiscard]] bool try_lock() noexcept { return true; }
    void unlock() noexcept {}

    [[nodiscard]] std::uint64_t word() const noexcept { return 0; }
    static void reset_cpu(CpuId) noexcept {}
};

} // namespace spinkick::sync
