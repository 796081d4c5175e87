// SPDX-License-Identifier: BSD-2-Clause
//
// `spinkick-report monitor`: a person, or a script on standard input, at the serial line of a guest that was booted
// with `monitor`. Editing, history and completion are libedit's.
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <editline/readline.h>
#include <fmt/format.h>

#include "tools/commands.hpp"
#include "tools/inputs.hpp"
#include "tools/monitor_session.hpp"
#include "tools/text.hpp"
#include "tools/unix_socket.hpp"

namespace spinkick::report {
namespace {

constexpr const char* kPrompt = "spinkick> ";
volatile std::sig_atomic_t asked_to_end = 0;

struct MonitorArguments {
    std::filesystem::path socket, log, history;
};

/// The serial line.
class Line {
  public:
    explicit Line(const std::filesystem::path& socket) {
        // QEMU makes the socket some time after it was started.
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{60};
        for (;;) {
            try {
                fd_ = connect_to(socket);
                return;
            } catch (const InputError&) {
                if (std::chrono::steady_clock::now() > deadline || asked_to_end != 0)
                    throw;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{50});
        }
    }
    ~Line() { ::close(fd_); }
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

    [[nodiscard]] int fd() const noexcept { return fd_; }

    /// Throws InputError if nobody takes it within ten seconds. A guest that is gone is seen by reading.
    void send(std::string_view bytes) const {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent >= 0) {
                bytes.remove_prefix(static_cast<std::size_t>(sent));
                continue;
            }
            if (errno == EPIPE || errno == ECONNRESET)
                return;
            pollfd waiting{fd_, POLLOUT, 0};
            if (errno != EINTR && (errno != EAGAIN || ::poll(&waiting, 1, 10'000) <= 0))
                throw InputError("the guest's serial line takes no bytes");
        }
    }

  private:
    int fd_ = -1;
};

// libedit's callbacks have no argument: what they need is here, for the one monitor of this program.
MonitorSession* session = nullptr;
std::optional<std::string> entered; ///< a line that was typed
bool left = false;                  ///< end of input: Ctrl-D

void take_line(char* line) {
    if (line == nullptr) {
        left = true;
        return;
    }
    entered = line;
    if (*line != '\0')
        add_history(line);
    std::free(line); // libedit's malloc
}

char* next_completion(const char*, int state) {
    static std::vector<std::string> found;
    if (state == 0)
        found = session->completions(rl_line_buffer);
    return static_cast<std::size_t>(state) < found.size() ? ::strdup(found[static_cast<std::size_t>(state)].c_str())
                                                          : nullptr;
}

char** complete(const char* text, int, int) {
    rl_attempted_completion_over = 1; // no file names
    const auto found = session->completions(rl_line_buffer);
    rl_completion_append_character = found.size() == 1 && found.front().ends_with('=') ? '\0' : ' ';
    return rl_completion_matches(text, next_completion);
}

/// The keyboard: lines with an editor on a terminal, lines of a script otherwise.
class Keyboard {
  public:
    explicit Keyboard(const std::filesystem::path& history) : history_(history), terminal_(isatty(STDIN_FILENO) == 1) {
        if (!terminal_)
            return;
        rl_attempted_completion_function = complete;
        using_history();
        if (!history_.empty())
            static_cast<void>(read_history(history_.c_str())); // there is none at first
        rl_callback_handler_install(kPrompt, take_line);
    }
    ~Keyboard() {
        if (!terminal_)
            return;
        rl_callback_handler_remove(); // the terminal as it was
        if (!history_.empty())
            static_cast<void>(write_history(history_.c_str()));
        fmt::print("\n");
    }
    Keyboard(const Keyboard&) = delete;
    Keyboard& operator=(const Keyboard&) = delete;

    [[nodiscard]] bool is_terminal() const noexcept { return terminal_; }

    /// Above the line that is being typed.
    void show(const std::vector<std::string>& lines) const {
        if (lines.empty())
            return;
        if (terminal_)
            fmt::print("\r\033[K");
        for (const auto& line : lines)
            fmt::print("{}\n", line);
        std::fflush(stdout);
        if (terminal_)
            rl_forced_update_display();
    }

    /// Something can be read. Gives lines in `entered`, and sets `left` at the end.
    void read() {
        if (terminal_) {
            rl_callback_read_char();
            if (entered) { // libedit has left its mode for lines, with the old one still in its buffer
                rl_callback_handler_remove();
                rl_callback_handler_install(kPrompt, take_line);
            }
            return;
        }
        std::array<char, 4096> buffer{};
        const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            return;
        if (got <= 0)
            closed_ = true;
        else
            script_.append(buffer.data(), static_cast<std::size_t>(got));
    }

    [[nodiscard]] bool is_closed() const noexcept { return closed_; }
    /// The script's next line, if it has one.
    std::optional<std::string> next_line() {
        if (closed_ && !script_.empty() && script_.back() != '\n')
            script_ += '\n';
        const auto end = script_.find('\n');
        if (end == std::string::npos) {
            if (closed_)
                left = true;
            return std::nullopt;
        }
        auto line = script_.substr(0, end);
        script_.erase(0, end + 1);
        return line;
    }

  private:
    std::filesystem::path history_;
    bool terminal_;
    std::string script_; ///< lines that have not been sent
    bool closed_ = false;
};

int run(const MonitorArguments& arguments) {
    std::ofstream log(arguments.log, std::ios::binary | std::ios::app);
    if (!log)
        throw InputError(fmt::format("{}: cannot be written", arguments.log.string()));
    struct sigaction action {};
    action.sa_handler = [](int) { asked_to_end = 1; }; // no SA_RESTART: poll() ends
    ::sigaction(SIGTERM, &action, nullptr);
    ::sigaction(SIGINT, &action, nullptr);
    const Line line(arguments.socket);
    MonitorSession here;
    session = &here;
    Keyboard keyboard(arguments.history);
    bool quit_sent = false;
    while (asked_to_end == 0) {
        std::array<pollfd, 2> waiting{pollfd{line.fd(), POLLIN, 0}, pollfd{STDIN_FILENO, POLLIN, 0}};
        const bool listens = !left && !keyboard.is_closed();
        const int ready = ::poll(waiting.data(), listens ? 2 : 1, -1); // the runner has a time limit
        if (ready < 0 && errno != EINTR)
            throw InputError(fmt::format("poll: {}", std::strerror(errno)));
        if (ready <= 0)
            continue;
        if (waiting[0].revents != 0) {
            std::array<char, 65536> buffer{};
            const ssize_t got = ::recv(line.fd(), buffer.data(), buffer.size(), 0);
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
                break; // the guest has ended
            if (got > 0) {
                const std::string_view bytes{buffer.data(), static_cast<std::size_t>(got)};
                log.write(bytes.data(), got);
                log.flush();
                keyboard.show(here.feed(bytes));
            }
        }
        if (listens && waiting[1].revents != 0)
            keyboard.read();
        if (keyboard.is_terminal()) {
            if (entered) {
                line.send(here.typed(*entered));
                entered.reset();
            }
        } else {
            while (here.may_go_on() && !left)
                if (const auto next = keyboard.next_line()) {
                    keyboard.show({kPrompt + *next});
                    line.send(here.scripted(*next));
                } else {
                    break;
                }
        }
        if (left && !quit_sent && here.is_ready()) {
            line.send(here.typed("quit"));
            quit_sent = true;
        }
    }
    if (!log.flush())
        throw InputError(fmt::format("{}: not all could be written", arguments.log.string()));
    return raw(ExitCode::pass);
}

} // namespace

Command monitor_command(CLI::App& parent) {
    auto arguments = std::make_shared<MonitorArguments>();
    auto* app = parent.add_subcommand(
        "monitor", "Give commands to a guest that was booted with `monitor`: typed, or a script on standard input");
    app->add_option("--socket", arguments->socket, "QEMU's socket of the guest's serial line")->required();
    app->add_option("--log", arguments->log, "every byte from the guest is appended to this file")->required();
    app->add_option("--history", arguments->history, "file that keeps what was typed");
    return {app, [arguments] { return run(*arguments); }};
}

} // namespace spinkick::report
