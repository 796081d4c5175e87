// SPDX-License-Identifier: BSD-2-Clause
#include "tests/host/console_capture.hpp"

#include <mutex>
#include <utility>

#include "kernel/console.hpp"

namespace {
std::mutex mutex;
std::vector<std::string> lines;
} // namespace

void spinkick::console_write_line(std::string_view line) noexcept {
    const std::lock_guard guard(mutex);
    lines.emplace_back(line);
}

std::vector<std::string> spinkick::test::take_console_lines() {
    const std::lock_guard guard(mutex);
    return std::exchange(lines, {});
}
