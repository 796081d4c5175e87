// SPDX-License-Identifier: BSD-2-Clause
//
// Text to Xen's own console by the console_io hypercall: the only way out of a PVH dom0, since Xen keeps the UART.
#pragma once

#include <string_view>

namespace spinkick::drivers::xen_console {

/// Writes the bytes as they are. False if Xen refuses: an unprivileged domain of a release build may not use it.
bool write(std::string_view text) noexcept;

} // namespace spinkick::drivers::xen_console
