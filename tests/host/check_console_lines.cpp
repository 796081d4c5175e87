// SPDX-License-Identifier: BSD-2-Clause
//
// check_console_lines LOG CPUS LINES: the host's half of smp.console_lines. Exit 0 if every line of every CPU is there
// exactly once with the right checksum, and no other line carries its mark.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "kernel/crc32.hpp"

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: check_console_lines LOG CPUS LINES\n");
        return 2;
    }
    const auto cpus = static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10));
    const auto lines = static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10));
    std::ifstream log(argv[1]);
    if (!log) {
        std::fprintf(stderr, "%s: cannot be read\n", argv[1]);
        return 2;
    }
    std::vector<std::vector<unsigned>> seen(cpus, std::vector<unsigned>(lines, 0));
    constexpr std::string_view kMark = "# console line ";
    unsigned bad = 0, good = 0, from_interrupts = 0;
    for (std::string line; std::getline(log, line);) {
        while (!line.empty() && line.back() == '\r')
            line.pop_back();
        const auto at = line.find(kMark);
        if (at == std::string::npos) {
            if (line.find("quick brown") != std::string::npos)
                ++bad; // a piece of a line without its beginning
            continue;
        }
        const auto crc_at = line.rfind(" crc=");
        unsigned cpu = 0, number = 0;
        std::array<char, 8> from{};
        const auto text_at = at + std::string_view("# console ").size();
        if (at != 0 || crc_at == std::string::npos ||
            std::sscanf(line.c_str() + text_at, "line cpu=%u n=%u from=%7s", &cpu, &number, from.data()) != 3 ||
            cpu >= cpus || number >= lines ||
            std::strtoul(line.c_str() + crc_at + 5, nullptr, 16) !=
                spinkick::crc32(std::string_view(line).substr(text_at, crc_at - text_at))) {
            if (bad++ < 5)
                std::fprintf(stderr, "broken: %s\n", line.c_str());
            continue;
        }
        ++seen[cpu][number];
        ++good;
        from_interrupts += std::string_view(from.data()) == "irq";
    }
    unsigned missing = 0, doubled = 0;
    for (const auto& row : seen)
        for (const auto count : row) {
            missing += count == 0;
            doubled += count > 1;
        }
    std::printf("console: %u good lines (%u from interrupts), %u broken, %u missing, %u doubled\n", good,
                from_interrupts, bad, missing, doubled);
    return bad == 0 && missing == 0 && doubled == 0 && from_interrupts == cpus * lines / 10 ? 0 : 1;
}
