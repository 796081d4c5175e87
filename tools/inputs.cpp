// SPDX-License-Identifier: BSD-2-Clause
#include "tools/inputs.hpp"

#include <cstdio>

#include <fmt/format.h>

#include "tools/text.hpp"

namespace spinkick::report {

void complain(std::string_view text) { fmt::print(stderr, "spinkick-report: {}\n", printable(text)); }

Loaded load_all(const std::vector<std::filesystem::path>& paths) {
    Loaded loaded;
    for (const auto& path : paths) {
        try {
            loaded.parts.push_back(load_results(path));
        } catch (const InputError& error) {
            complain(error.what());
            loaded.complete = false;
        }
    }
    return loaded;
}

std::vector<std::filesystem::path> paths_in(const std::vector<std::string>& words) {
    std::vector<std::filesystem::path> paths;
    for (const std::string& word : words) {
        if (std::filesystem::exists(word)) {
            paths.emplace_back(word);
            continue;
        }
        for (std::size_t begin = 0; begin <= word.size();) {
            const std::size_t end = std::min(word.find(',', begin), word.size());
            if (end > begin)
                paths.emplace_back(word.substr(begin, end - begin));
            begin = end + 1;
        }
    }
    return paths;
}

} // namespace spinkick::report
