// SPDX-License-Identifier: BSD-2-Clause
//
// QEMU's sockets, for its control protocol and for a guest's serial line.
#pragma once

#include <filesystem>

namespace spinkick::report {

/// A connected, non-blocking stream socket, which the caller closes. Throws InputError if nobody listens there.
[[nodiscard]] int connect_to(const std::filesystem::path& socket);

} // namespace spinkick::report
