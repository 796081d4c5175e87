// SPDX-License-Identifier: BSD-2-Clause
//
// What KVM counted on the host while the guest ran, beside what the guest counted itself. Some of what a hypervisor
// owes its guest is invisible from inside: a yield that a kick should have brought is only missing in the host's
// statistics.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "tools/results.hpp"

namespace spinkick::report {

/// KVM's names (Documentation/virt/kvm/api.rst, binary statistics) and values.
using HostCounters = std::map<std::string, std::uint64_t>;

/// "halt_exits=12 hypercalls=3". Throws InputError, which names the word, for anything else.
[[nodiscard]] HostCounters parse_host_counters(std::string_view words);

/// The test `host.yields_for_each_kick`: KVM tries one directed yield for each KVM_HC_KICK_CPU and each
/// KVM_HC_SCHED_YIELD that it takes (arch/x86/kvm/x86.c, kvm_emulate_hypercall). `records` are the guest's, of which
/// `hypercalls` is the last word.
[[nodiscard]] TestResult yields_for_each_kick(const std::vector<Json>& records, const HostCounters& host,
                                              const RunId& id);

} // namespace spinkick::report
