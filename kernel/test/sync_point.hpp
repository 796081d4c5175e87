// SPDX-License-Identifier: BSD-2-Clause
//
// Moments at which the host reads its counters of this guest: what it counts between two of them belongs to what the
// guest did there, and to nothing else.
#pragma once

#include <cstdint>
#include <optional>

namespace spinkick::test {

/// Prints `# sync N`, N from 1 on, and waits for one byte over the console, which says that the counters have been
/// read; returns N. Nothing without `sync=on`, and if no byte came within two seconds: a WARN line says so, once, and
/// no further point waits. On the boot CPU, while no worker runs.
[[nodiscard]] std::optional<std::uint32_t> sync_point() noexcept;

} // namespace spinkick::test
