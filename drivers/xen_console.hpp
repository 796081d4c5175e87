// SPDX-License-Identifier: BSD-2-Clause
//
// Text to and from Xen's own console by the console_io hypercall: the only way of a PVH dom0, since Xen keeps the UART.
#pragma once

#include <string_view>

namespace spinkick::drivers::xen_console {

/// Writes the bytes as they are. False if Xen refuses: an unprivileged domain of a release build may not use it.
bool write(std::string_view text) noexcept;
/// The next byte that Xen has kept for this domain; -1 for none, or if Xen refuses.
[[nodiscard]] int read() noexcept;

} // namespace spinkick::drivers::xen_console
