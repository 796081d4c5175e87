// SPDX-License-Identifier: BSD-2-Clause
//
// What KVM counted on the host while the guest ran, beside what the guest counted itself. Some of what a hypervisor
// owes its guest is invisible from inside: a yield that a kick should have brought is only missing in the host's
// statistics.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "tools/results.hpp"

namespace spinkick::report {

/// KVM's names (Documentation/virt/kvm/api.rst, binary statistics) and values.
using HostCounters = std::map<std::string, std::uint64_t>;

/// "halt_exits=12 hypercalls=3". Throws InputError, which names the word, for anything else.
[[nodiscard]] HostCounters parse_host_counters(std::string_view words);

/// By the number of the sync point at which they were read.
using HostSyncs = std::map<std::uint32_t, HostCounters>;

/// Lines "3 halt_exits=12 ...". Throws InputError, which names `source` and the line, for anything else.
[[nodiscard]] HostSyncs parse_host_syncs(std::string_view text, const std::string& source);
/// The same of a file.
[[nodiscard]] HostSyncs read_host_syncs(const std::filesystem::path& path);

/// Gives each record with `sync_begin` and `sync_end` what the host counted between the two, each counter under
/// `host_` and its name. A record whose points are not there stays as it is.
void add_host_counters(Json& record, const HostSyncs& syncs);

/// The test `host.same_counts_between_syncs`: in each measurement KVM tried as many directed yields as the guest made
/// kicks and SCHED_YIELDs, and saw at least as many HLTs as the locks' waits slept through: idle CPUs halt as well.
[[nodiscard]] TestResult same_counts_between_syncs(const std::vector<Json>& records, const RunId& id);

/// The test `host.yields_for_each_kick`: KVM tries one directed yield for each KVM_HC_KICK_CPU and each
/// KVM_HC_SCHED_YIELD that it takes (arch/x86/kvm/x86.c, kvm_emulate_hypercall). `records` are the guest's, of which
/// `hypercalls` is the last word.
[[nodiscard]] TestResult yields_for_each_kick(const std::vector<Json>& records, const HostCounters& host,
                                              const RunId& id);

} // namespace spinkick::report
