// SPDX-License-Identifier: BSD-2-Clause
//
// The slow-path counters as an enumeration and as names; the list itself is events.def.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spinkick::sync {

enum class LockEvent : std::uint8_t {
#define LOCK_EVENT(name, meaning) name,
#include "kernel/sync/events.def"
#undef LOCK_EVENT
};

inline constexpr auto kLockEventNames = std::to_array<std::string_view>({
#define LOCK_EVENT(name, meaning) #name,
#include "kernel/sync/events.def"
#undef LOCK_EVENT
});

inline constexpr std::size_t kLockEvents = kLockEventNames.size();

} // namespace spinkick::sync
