// SPDX-License-Identifier: BSD-2-Clause
//
// What a QEMU answers to the dump of a stall. Input: a byte that chooses the view, and all that QEMU says, greeting
// first; then it is gone.
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.hpp"
#include "tools/host_counters.hpp"
#include "tools/post_mortem.hpp"
#include "tools/text.hpp"

namespace spinkick::fuzz {
namespace {

/// A listening socket, in a folder that goes with the process.
class Listener {
  public:
    Listener() {
        std::string folder = (std::filesystem::temp_directory_path() / "spinkick-fuzz-XXXXXX").string();
        require(::mkdtemp(folder.data()) != nullptr, "a temporary folder");
        folder_ = folder;
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        const std::string name = path().string();
        require(name.size() < sizeof address.sun_path, "a short name of a socket");
        std::copy(name.begin(), name.end(), address.sun_path);
        fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        require(fd_ >= 0 && ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                    ::listen(fd_, 1) == 0,
                "a socket that listens");
    }
    ~Listener() {
        ::close(fd_);
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    [[nodiscard]] std::filesystem::path path() const { return folder_ / "qmp"; }

    /// Takes one client, tells it everything, and hears it out.
    void serve(std::string_view words) const {
        const int client = ::accept(fd_, nullptr, nullptr);
        if (client < 0)
            return;
        while (!words.empty()) {
            const ssize_t sent = ::send(client, words.data(), words.size(), MSG_NOSIGNAL);
            if (sent <= 0)
                break;
            words.remove_prefix(static_cast<std::size_t>(sent));
        }
        ::shutdown(client, SHUT_WR);
        std::array<char, 4096> heard{};
        while (::recv(client, heard.data(), heard.size(), 0) > 0) {
        }
        ::close(client);
    }

  private:
    std::filesystem::path folder_;
    int fd_ = -1;
};

} // namespace

void qmp(Input input) {
    using namespace report;
    static const Listener listener;
    const bool is_virtual = (take_byte(input) & 1) != 0;
    const std::string_view words = text_of(input);

    std::thread server([&] { listener.serve(words); });
    const OutsideLook look =
        look_from_outside(listener.path(), std::chrono::steady_clock::now() + std::chrono::seconds{5});
    server.join();
    const std::string dump =
        dump_of(look, is_virtual ? CpuView::vcpus : CpuView::pcpus, nullptr, "no verdict within 1 s", "lock.fifo");
    require(dump.find("# stall verdict: ") != std::string::npos, "a dump has a verdict");
    // It goes into the log: nothing that QEMU says may become a result there.
    StreamParser parser;
    parser.feed(dump);
    parser.end();
    require(parser.stream().tests.empty() && !parser.stream().verdict && !parser.stream().plan &&
                !parser.stream().panic && parser.stream().damaged_records == 0,
            "a dump is comments and whole records");

    // Texts of the human monitor, without the JSON around them.
    (void)parse_registers(words);
    (void)parse_lapic(words);
    try {
        (void)parse_host_counters(words);
    } catch (const InputError&) {
    }
}

} // namespace spinkick::fuzz
