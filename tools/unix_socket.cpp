// SPDX-License-Identifier: BSD-2-Clause
#include "tools/unix_socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "tools/text.hpp"

namespace spinkick::report {

int connect_to(const std::filesystem::path& socket) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string& name = socket.native();
    if (name.size() >= sizeof address.sun_path)
        throw InputError(fmt::format("{}: a socket's name has at most {} bytes", name, sizeof address.sun_path - 1));
    std::copy(name.begin(), name.end(), address.sun_path);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    // A Unix socket connects at once or not at all; EAGAIN: somebody else is being served, and more are waiting.
    if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        const int error = errno;
        if (fd >= 0)
            ::close(fd);
        throw InputError(fmt::format("{}: no QEMU answers there: {}", name, std::strerror(error)));
    }
    return fd;
}

} // namespace spinkick::report
