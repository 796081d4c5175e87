// SPDX-License-Identifier: BSD-2-Clause
//
// The dump of a stall when no CPU of the guest is left to write it: what QEMU knows about the CPUs, in the words of the
// image's own dump (kernel/stress/stall_dump.cpp), appended to the serial log before the runner ends QEMU.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/image_symbols.hpp"
#include "tools/qmp.hpp"

namespace spinkick::report {

/// Whose registers QEMU shows: those of the image's vCPUs, or those of the CPUs below a hypervisor that it runs, each
/// of which is in the hypervisor or in one of the vCPUs.
enum class CpuView : std::uint8_t { vcpus, pcpus };

struct OutsideApic {
    std::uint32_t in_service = 0; ///< highest vectors, 0 for none
    std::uint32_t requested = 0;
    std::uint32_t tpr = 0;
};

struct OutsideCpu {
    std::uint32_t cpu = 0; ///< QEMU's number; that of the image, which counts the firmware's table in the same order
    bool known = false;    ///< there are registers
    std::uint64_t rip = 0, rsp = 0, rflags = 0;
    std::uint32_t cpl = 0;
    bool halted = false;
    std::optional<OutsideApic> apic;
    std::optional<std::uint64_t> top_of_stack; ///< of a halted one: the caller, if a function does nothing but halt
};

/// What QEMU told before the time was over.
struct OutsideLook {
    std::string status; ///< "running", "paused" ...; empty: unknown
    std::vector<OutsideCpu> cpus;
    std::vector<std::string> complaints; ///< what could not be had, and why
};

/// The CPUs in the answer to `info registers -a`. What is cut or foreign is left out.
[[nodiscard]] std::vector<OutsideCpu> parse_registers(std::string_view text);
/// The answer to `info lapic`; nothing if it is none.
[[nodiscard]] std::optional<OutsideApic> parse_lapic(std::string_view text);

/// Stops the guest and asks for all CPUs. Never throws for what QEMU does or does not say.
[[nodiscard]] OutsideLook look_from_outside(const std::filesystem::path& socket, QmpClient::TimePoint deadline);

/// The dump: lines as the image would have written them, records included. `symbols` may be absent; `test` is the one
/// that was running, or empty.
[[nodiscard]] std::string dump_of(const OutsideLook& look, CpuView view, const ImageSymbols* symbols,
                                  std::string_view why, std::string_view test);

struct PostMortemOptions {
    std::filesystem::path socket;
    std::filesystem::path log;
    std::filesystem::path image;
    CpuView view = CpuView::vcpus;
    std::uint32_t after_s = 0; ///< waits for so long before it looks: the runner's limit
};

/// Waits, looks, and appends the dump to the log. Ends 5 s after the wait at the latest. Throws InputError only if the
/// log cannot be written.
void post_mortem(const PostMortemOptions& options);

} // namespace spinkick::report
