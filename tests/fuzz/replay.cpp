// SPDX-License-Identifier: BSD-2-Clause
//
// replay CORPUS: every file of every target's folder, once, through its parser. Inputs that once were findings are
// among them.
#include <algorithm>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.hpp"

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: fuzz_replay CORPUS\n");
        return 2;
    }
    // Of this program's own time, however busy the machine: an input of some KiB takes milliseconds.
    constexpr std::clock_t kMostTime = 5 * CLOCKS_PER_SEC;
    for (const auto& target : spinkick::fuzz::kTargets) {
        const auto folder = std::filesystem::path(argv[1]) / target.name;
        std::vector<std::filesystem::path> files;
        if (std::filesystem::is_directory(folder))
            for (const auto& entry : std::filesystem::directory_iterator(folder))
                files.push_back(entry.path());
        if (files.empty()) {
            std::fprintf(stderr, "%s: no input there\n", folder.c_str());
            return 1;
        }
        std::sort(files.begin(), files.end());
        for (const auto& file : files) {
            std::ifstream stream(file, std::ios::binary);
            const std::vector<char> bytes(std::istreambuf_iterator<char>(stream), {});
            // Of exactly its size, so that a sanitizer sees what reads beyond it.
            const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
            std::printf("%s/%s\n", folder.filename().c_str(), file.filename().c_str());
            std::fflush(stdout); // the last one named is the one that did not return
            const std::clock_t start = std::clock();
            try {
                target.run({input.data(), input.size()});
            } catch (const std::exception& error) {
                std::fprintf(stderr, "%s throws: %s\n", file.c_str(), error.what());
                return 1;
            }
            if (std::clock() - start > kMostTime) {
                std::fprintf(stderr, "%s takes too long\n", file.c_str());
                return 1;
            }
        }
    }
    return 0;
}
