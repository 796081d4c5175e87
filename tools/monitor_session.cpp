// SPDX-License-Identifier: BSD-2-Clause
#include "tools/monitor_session.hpp"

#include <array>

#include "tools/text.hpp"

namespace spinkick::report {
namespace {

using namespace std::string_view_literals;

constexpr std::array kCommands{"dump"sv, "help"sv, "locks"sv, "quit"sv,  "reset"sv,
                               "run"sv,  "set"sv,  "stats"sv, "tests"sv, "trace"sv};
/// Those that are worth turning by hand; the guest knows them all.
constexpr std::array kKeys{"byte_timeout"sv,    "directed_yield"sv, "duration_ms"sv, "jobs"sv,
                           "kick_holder"sv,     "load"sv,           "locks"sv,       "pairs"sv,
                           "qspin_threshold"sv, "relax"sv,          "repeat"sv,      "seed"sv,
                           "spin_threshold"sv,  "stealing"sv,       "wait_early"sv,  "watchdog_ms"sv};
constexpr std::string_view kReady = "# monitor: ready", kDone = "# monitor: done";
constexpr std::size_t kLongestLine = 65536;

/// The line as a person wants it; nothing of a record for programs.
bool show(std::string_view& line) {
    if (line.starts_with("# json ") || line == kReady || line == kDone)
        return false;
    if (line.starts_with("# "))
        line.remove_prefix(2);
    return true;
}

} // namespace

std::vector<std::string> MonitorSession::feed(std::string_view bytes) {
    std::vector<std::string> lines;
    unread_ += bytes;
    for (auto end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
        std::string whole = unread_.substr(0, end);
        unread_.erase(0, end + 1);
        while (!whole.empty() && whole.back() == '\r')
            whole.pop_back();
        std::string_view line = whole;
        if (line == kReady || line == kDone) {
            open_ -= open_ != 0 ? 1u : 0u;
            if (open_ == 0)
                left_behind_ = 0;
        }
        // What `tests` and `locks` answer: "# NAME: claim", "# LOCK/BACKEND", "# LOCK/BACKEND: fact".
        if (line.starts_with("# ")) {
            const auto name = line.substr(2, line.find(": ") == std::string_view::npos ? std::string_view::npos
                                                                                       : line.find(": ") - 2);
            if (name.find(' ') == std::string_view::npos && name.find('.') != std::string_view::npos)
                tests_.emplace(name);
            else if (name.find(' ') == std::string_view::npos && name.find('/') != std::string_view::npos)
                locks_.emplace(name);
        }
        if (show(line))
            lines.push_back(printable(line));
    }
    if (unread_.size() > kLongestLine)
        unread_.clear(); // no line of ours; the log has it
    return lines;
}

std::string MonitorSession::typed(std::string_view line) {
    if (line.find_first_not_of(' ') == std::string_view::npos)
        return "\n"; // the guest does not answer an empty line
    ++open_;
    return std::string{line} + "\n";
}

std::string MonitorSession::scripted(std::string_view line) {
    while (line.ends_with(' '))
        line.remove_suffix(1);
    const bool is_left_behind = line.ends_with(" &");
    if (is_left_behind)
        line.remove_suffix(2);
    auto bytes = typed(line);
    if (is_left_behind)
        left_behind_ = open_;
    return bytes;
}

std::vector<std::string> MonitorSession::completions(std::string_view line) const {
    const auto blank = line.find_last_of(' ');
    const auto last = blank == std::string_view::npos ? line : line.substr(blank + 1);
    const auto first = line.substr(0, line.find(' '));
    std::vector<std::string> found;
    const auto add = [&](const auto& words, std::string_view tail = {}) {
        for (const auto& word : words)
            if (std::string_view{word}.starts_with(last))
                found.push_back(std::string{word} + std::string{tail});
    };
    if (blank == std::string_view::npos) {
        add(kCommands);
    } else if (first == "set") {
        if (line.find(' ') == blank)
            add(kKeys);
    } else if (first == "trace") {
        add(locks_);
    } else if (first == "run" || first == "tests") {
        if (line.find(' ') == blank)
            add(tests_);
        else
            add(kKeys, "=");
    }
    return found;
}

} // namespace spinkick::report
