// SPDX-License-Identifier: BSD-2-Clause
//
// The project's parsers as libFuzzer sees them: a function for each, which takes any bytes at all. Undefined behaviour
// is the sanitizers' to find; what else must not happen is said here by require(). The same functions replay the corpus
// in the default tests (replay.cpp), where no fuzzer is needed.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

namespace spinkick::fuzz {

using Input = std::span<const std::uint8_t>;

void acpi_tables(Input input);
void pvh_info(Input input);
void multiboot2_info(Input input);
void command_line(Input input);
void serial_stream(Input input);
void results_json(Input input);
void qmp(Input input);

struct Target {
    std::string_view name; ///< also of its folder in the corpus
    void (*run)(Input input);
};
inline constexpr std::array kTargets{
    Target{"acpi_tables", acpi_tables},
    Target{"pvh_info", pvh_info},
    Target{"multiboot2_info", multiboot2_info},
    Target{"command_line", command_line},
    Target{"serial_stream", serial_stream},
    Target{"results_json", results_json},
    Target{"qmp", qmp},
};

/// Ends the program, which a fuzzer takes for a finding.
inline void require(bool holds, const char* what) {
    if (holds)
        return;
    std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
    std::abort();
}

[[nodiscard]] inline std::string_view text_of(Input input) {
    return {reinterpret_cast<const char*>(input.data()), input.size()};
}

/// Takes one byte off the front; 0 if there is none.
[[nodiscard]] inline std::uint8_t take_byte(Input& input) {
    if (input.empty())
        return 0;
    const std::uint8_t byte = input.front();
    input = input.subspan(1);
    return byte;
}

} // namespace spinkick::fuzz
