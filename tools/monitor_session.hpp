// SPDX-License-Identifier: BSD-2-Clause
//
// The runner's side of the monitor (kernel/test/monitor.hpp), apart from sockets and terminals: what of the stream a
// person sees, when the next command of a script may go, and what can stand behind a half-typed word.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spinkick::report {

class MonitorSession {
  public:
    /// Bytes of the guest's stream; the lines to show, without the marks of the stream.
    [[nodiscard]] std::vector<std::string> feed(std::string_view bytes);
    /// The guest takes commands, and has answered all of them.
    [[nodiscard]] bool is_ready() const noexcept { return open_ == 0; }

    /// What to send for a line that was typed. A person may type while a test runs.
    [[nodiscard]] std::string typed(std::string_view line);
    /// The same for a line of a script, of which the next one waits until may_go_on(). A command that ends with ` &` is
    /// not waited for.
    [[nodiscard]] std::string scripted(std::string_view line);
    [[nodiscard]] bool may_go_on() const noexcept { return open_ <= left_behind_; }

    /// What the last word of `line` may become: commands, names of tests and locks that the guest has shown, keys.
    [[nodiscard]] std::vector<std::string> completions(std::string_view line) const;

  private:
    std::string unread_;
    std::uint32_t open_ = 1;        ///< commands without an answer; at first, the guest that is not there yet
    std::uint32_t left_behind_ = 0; ///< of these, such as are not waited for
    std::set<std::string, std::less<>> tests_, locks_;
};

} // namespace spinkick::report
