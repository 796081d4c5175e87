// SPDX-License-Identifier: BSD-2-Clause
//
// A client of QEMU's machine protocol (QMP): one JSON object a line, over a Unix socket. The QEMU at the other end may
// be stopped, dying or stuck: every wait ends at one point in time, which the caller sets once for all that it wants.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tools/serial_stream.hpp"

namespace spinkick::report {

class QmpClient {
  public:
    using TimePoint = std::chrono::steady_clock::time_point;

    /// Connects, and leaves the capabilities negotiation behind. Throws InputError, as all of this does.
    QmpClient(const std::filesystem::path& socket, TimePoint deadline);
    ~QmpClient();
    QmpClient(const QmpClient&) = delete;
    QmpClient& operator=(const QmpClient&) = delete;

    /// The value of "return". Events that come in between are nobody's business here.
    Json execute(std::string_view command, const Json& arguments = {});
    /// What a command of the human monitor prints; `cpu` is the one that it is about.
    std::string monitor(std::string_view command_line, std::uint32_t cpu = 0);
    /// Memory of the guest at an address that is virtual to `cpu`: the top of a stack, or what a symbol of the image
    /// names, such as the rings of a flight recorder. Empty if it cannot be read there. Travels by a file beside the
    /// socket, which QEMU writes.
    std::vector<std::byte> memory(std::uint64_t address, std::size_t size, std::uint32_t cpu = 0);

  private:
    /// The whole answer to a command.
    Json reply_to(std::string_view command, const Json& arguments);
    void send(std::string_view line, std::string_view what);
    [[nodiscard]] Json receive(std::string_view what);
    void wait_for(short events, std::string_view what) const;

    std::filesystem::path socket_;
    int fd_ = -1;
    std::string unread_;
    TimePoint deadline_;
};

} // namespace spinkick::report
