// SPDX-License-Identifier: BSD-2-Clause
#include "tools/follow.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "tools/text.hpp"

namespace spinkick::report {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A terminal line that changes more often cannot be read; a clock that stands for longer looks dead.
constexpr milliseconds kRefresh{200};

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0) {
            if (errno == EINTR)
                continue;
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

std::size_t terminal_width(int fd) {
    winsize size{};
    return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// "8 s", "2 min 05 s"
std::string seconds_text(std::chrono::seconds time) {
    const auto s = time.count();
    return s < 60 ? fmt::format("{} s", s) : fmt::format("{} min {:02} s", s / 60, s % 60);
}

/// "[ 12/47]"; without a plan "[ 12]".
std::string count_text(const Stream& stream, std::size_t done) {
    if (!stream.plan)
        return fmt::format("[{:>3}]", done);
    const std::string total = std::to_string(*stream.plan);
    return fmt::format("[{:>{}}/{}]", done, total.size(), total);
}

/// What the copying thread has learnt, for the showing thread.
class Shared {
  public:
    void feed(std::string_view bytes) {
        const std::lock_guard lock(mutex_);
        parser_.feed(bytes);
    }
    void finish() {
        {
            const std::lock_guard lock(mutex_);
            parser_.end();
            finished_ = true;
        }
        finish_.notify_one();
    }
    /// Waits until the clock on the screen has to move; true, and at once, when the input has ended.
    [[nodiscard]] bool wait() {
        std::unique_lock lock(mutex_);
        return finish_.wait_for(lock, kRefresh, [this] { return finished_; });
    }
    /// Calls `look` with a stream that does not change meanwhile.
    template <class Look>
    auto with_stream(Look look) {
        const std::lock_guard lock(mutex_);
        return look(parser_.stream());
    }

  private:
    std::mutex mutex_;
    std::condition_variable finish_;
    StreamParser parser_;
    bool finished_ = false;
};

/// Reads as fast as the guest writes. Nothing that a terminal does can hold this thread up, so nothing can hold up the
/// guest, whose UART would otherwise stay full.
void copy(int input, int log, Shared& shared, std::atomic<int>& log_error) {
    std::array<char, 65536> buffer{};
    for (;;) {
        const ssize_t got = ::read(input, buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        const std::string_view bytes{buffer.data(), static_cast<std::size_t>(got)};
        // After a full disk the guest still has to be read to its end: its verdict may yet be seen.
        if (log_error.load(std::memory_order_relaxed) == 0 && !write_all(log, bytes))
            log_error.store(errno, std::memory_order_relaxed);
        shared.feed(bytes);
    }
    shared.finish();
}

} // namespace

std::string progress_line(const Stream& stream, milliseconds elapsed, std::optional<std::uint32_t> total_timeout_s) {
    const std::size_t done = stream.completed.size();
    std::string text = count_text(stream, done) + " ";
    const auto running = stream.tests.find(stream.running);
    if (stream.panic)
        text += "PANIC: " + *stream.panic;
    else if (stream.verdict)
        text += fmt::format("verdict {}", name_of(stream.verdict->word));
    else if (running != stream.tests.end())
        text += running->second.name;
    else
        text += stream.plan ? "between tests" : "booting";

    text += "  " + seconds_text(duration_cast<std::chrono::seconds>(elapsed));
    if (stream.plan && done != 0 && done < *stream.plan) {
        const auto left = elapsed * (*stream.plan - done) / done;
        text += fmt::format(", about {} left", seconds_text(duration_cast<std::chrono::seconds>(left)));
    }
    if (total_timeout_s)
        text += fmt::format(" (limit {})", seconds_text(std::chrono::seconds{*total_timeout_s}));
    return text;
}

std::string completed_line(const Stream& stream, std::uint32_t number, std::size_t done) {
    const StreamTest& test = stream.tests.at(number);
    std::string text = count_text(stream, done) + " ";
    switch (test.status.value_or(Status::not_run)) {
    case Status::pass:
        text += "ok ";
        break;
    case Status::skip:
        text += "skip ";
        break;
    case Status::error:
        text += "ERROR ";
        break;
    case Status::fail:
        text += "FAIL ";
        break;
    case Status::not_run:
        text += "? ";
        break;
    }
    text += test.name;
    return test.reason.empty() ? text : text + ": " + test.reason;
}

void follow(int input, int output, const FollowOptions& options) {
    // The log must go on when the person's terminal or pager has gone. Ctrl-C reaches the whole foreground group; the
    // runner stops the guest then, and its last bytes still belong into the log.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGINT, SIG_IGN);

    const int log = ::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log < 0)
        throw InputError(fmt::format("{}: {}", options.log.string(), std::strerror(errno)));

    const bool terminal = !options.plain && ::isatty(output) == 1;
    const auto start = steady_clock::now();
    Shared shared;
    std::atomic<int> log_error{0};
    std::thread copier(copy, input, log, std::ref(shared), std::ref(log_error));

    std::size_t shown = 0;
    bool finished = false;
    while (!finished) {
        finished = shared.wait();
        std::string out = shared.with_stream([&](const Stream& stream) {
            std::string text;
            for (; shown < stream.completed.size(); ++shown) {
                const std::uint32_t number = stream.completed[shown];
                const auto status = stream.tests.at(number).status;
                // On a terminal only what someone must see stays above the moving line.
                if (terminal && status != Status::fail && status != Status::error)
                    continue;
                text += (terminal ? "\r\x1b[K" : "") + completed_line(stream, number, shown + 1) + "\n";
            }
            if (terminal && !finished) {
                const auto elapsed = duration_cast<milliseconds>(steady_clock::now() - start);
                const std::string line = progress_line(stream, elapsed, options.total_timeout_s);
                text += "\r\x1b[K" + line.substr(0, terminal_width(output) - 1);
            }
            return text;
        });
        if (terminal && finished)
            out += "\r\x1b[K";
        // A reader of the progress that has gone away is no reason to stop.
        static_cast<void>(write_all(output, out));
    }
    copier.join();
    if (::close(log) != 0 && log_error == 0)
        log_error = errno;
    if (log_error != 0)
        throw InputError(
            fmt::format("{}: not all bytes are in it: {}", options.log.string(), std::strerror(log_error)));
}

} // namespace spinkick::report
