// SPDX-License-Identifier: BSD-2-Clause
//
// The results that a command line names: what cannot be read is one line on standard error, and the rest is used.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tools/results.hpp"

namespace spinkick::report {

/// One line on standard error.
void complain(std::string_view text);

/// What could be read of several results, and whether that was all.
struct Loaded {
    std::vector<Results> parts;
    bool complete = true;
};

[[nodiscard]] Loaded load_all(const std::vector<std::filesystem::path>& paths);

/// Words that each name a file or a folder, or several with commas between them. A path that exists is never divided.
[[nodiscard]] std::vector<std::filesystem::path> paths_in(const std::vector<std::string>& words);

} // namespace spinkick::report
