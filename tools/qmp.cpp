// SPDX-License-Identifier: BSD-2-Clause
#include "tools/qmp.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "tools/record.hpp"
#include "tools/text.hpp"
#include "tools/unix_socket.hpp"

namespace spinkick::report {
namespace {

// `info registers -a` of 4,096 vCPUs, with room.
constexpr std::size_t kLongestReply = 64 << 20;

/// The beginning of a text that is not what was expected.
std::string excerpt(std::string_view text) { return printable(text.substr(0, 120)); }

int milliseconds_until(QmpClient::TimePoint deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

} // namespace

QmpClient::QmpClient(const std::filesystem::path& socket, TimePoint deadline)
    : socket_(std::filesystem::absolute(socket)), fd_(connect_to(socket)), deadline_(deadline) {
    try {
        if (!receive("the greeting").contains("QMP"))
            throw InputError(fmt::format("{}: whoever is there does not speak QMP", socket.native()));
        static_cast<void>(execute("qmp_capabilities"));
    } catch (...) {
        ::close(fd_);
        throw;
    }
}

QmpClient::~QmpClient() { ::close(fd_); }

void QmpClient::wait_for(short events, std::string_view what) const {
    pollfd waiting{fd_, events, 0};
    int ready = 0;
    // The time counts for a QEMU that sends without end as well as for one that sends nothing.
    for (int left = milliseconds_until(deadline_); left > 0; left = milliseconds_until(deadline_)) {
        ready = ::poll(&waiting, 1, left);
        if (ready >= 0 || errno != EINTR)
            break;
    }
    if (ready <= 0)
        throw InputError(fmt::format("QEMU keeps {} back until the time is over: it is stopped, or it hangs", what));
}

void QmpClient::send(std::string_view line, std::string_view what) {
    while (!line.empty()) {
        wait_for(POLLOUT, what);
        const ssize_t sent = ::send(fd_, line.data(), line.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            throw InputError(fmt::format("QEMU has gone before {}: {}", what, std::strerror(errno)));
        line.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
    }
}

Json QmpClient::receive(std::string_view what) {
    std::array<char, 65536> buffer{};
    std::size_t end = unread_.find('\n');
    while (end == std::string::npos) {
        wait_for(POLLIN, what);
        const ssize_t got = ::recv(fd_, buffer.data(), buffer.size(), 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (got <= 0)
            throw InputError(fmt::format("QEMU has gone in the middle of {}{}{}", what, unread_.empty() ? "" : ": ",
                                         excerpt(unread_)));
        const std::string_view bytes{buffer.data(), static_cast<std::size_t>(got)};
        if (unread_.size() + bytes.size() > kLongestReply)
            throw InputError(fmt::format("QEMU's line for {} has no end within {} bytes", what, kLongestReply));
        if (const std::size_t at = bytes.find('\n'); at != std::string_view::npos)
            end = unread_.size() + at;
        unread_ += bytes;
    }
    const std::string line = unread_.substr(0, end);
    unread_.erase(0, end + 1);
    Json json = Json::parse(line, nullptr, false);
    if (!json.is_object())
        throw InputError(fmt::format("QEMU's line for {} is no JSON object: {}", what, excerpt(line)));
    return json;
}

Json QmpClient::reply_to(std::string_view command, const Json& arguments) {
    Json request{{"execute", command}};
    if (!arguments.is_null())
        request["arguments"] = arguments;
    const std::string what = fmt::format("the answer to {}", command);
    send(request.dump() + "\n", what);
    for (;;) {
        Json reply = receive(what);
        if (!reply.contains("event"))
            return reply;
    }
}

Json QmpClient::execute(std::string_view command, const Json& arguments) {
    Json reply = reply_to(command, arguments);
    if (const auto value = reply.find("return"); value != reply.end())
        return std::move(*value);
    const auto error = reply.find("error");
    const std::string reason = error != reply.end() ? text_in(*error, "desc") : "";
    throw InputError(fmt::format("QEMU refuses {}: {}", command, excerpt(reason.empty() ? reply.dump() : reason)));
}

std::string QmpClient::monitor(std::string_view command_line, std::uint32_t cpu) {
    const Json text = execute("human-monitor-command", Json{{"command-line", command_line}, {"cpu-index", cpu}});
    if (!text.is_string())
        throw InputError(fmt::format("QEMU's answer to {} is no text: {}", command_line, excerpt(text.dump())));
    return text.get<std::string>();
}

std::vector<std::byte> QmpClient::memory(std::uint64_t address, std::size_t size, std::uint32_t cpu) {
    const std::string file = socket_.string() + ".memory";
    // An address of the upper half is a negative number to QMP.
    const Json reply = reply_to(
        "memsave",
        Json{{"val", static_cast<std::int64_t>(address)}, {"size", size}, {"filename", file}, {"cpu-index", cpu}});
    std::vector<std::byte> bytes;
    if (reply.contains("return")) {
        bytes.resize(size);
        std::ifstream saved(file, std::ios::binary);
        saved.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
        bytes.resize(static_cast<std::size_t>(saved.gcount()));
    }
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
    return bytes;
}

} // namespace spinkick::report
