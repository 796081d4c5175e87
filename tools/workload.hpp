// SPDX-License-Identifier: BSD-2-Clause
//
// The records of one workload, each with its place: what the tables in published layouts are made of.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/figures.hpp"
#include "tools/record.hpp"
#include "tools/results.hpp"

namespace spinkick::report {

struct WorkloadRecord {
    Place place;
    std::string lock, backend;
    const Json* record; ///< in the results
};

/// All records of type `bench` of that name, in the order in which the image wrote them.
[[nodiscard]] std::vector<WorkloadRecord> workload_records(const Results& results, std::string_view bench);

/// Records that may share a table: in groups of equal key_of(record), in the order of their first ones.
template <class KeyOf>
[[nodiscard]] auto grouped(const std::vector<WorkloadRecord>& records, KeyOf key_of) {
    using Key = decltype(key_of(records.front()));
    std::vector<std::pair<Key, std::vector<WorkloadRecord>>> groups;
    for (const WorkloadRecord& record : records) {
        Key key = key_of(record);
        auto group = std::find_if(groups.begin(), groups.end(), [&key](const auto& g) { return g.first == key; });
        if (group == groups.end())
            group = groups.insert(groups.end(), {std::move(key), {}});
        group->second.push_back(record);
    }
    return groups;
}

/// The back ends of locks that sleep, a hypervisor's before `ipi`, which is there in any case; one without a name if
/// there is none. A table with "PV on" in it is made for each of them.
[[nodiscard]] std::vector<std::string> sleeping_backends(const std::vector<WorkloadRecord>& records);

/// The place of a block of a table, as its heading begins: with the overcommit, where that is known.
[[nodiscard]] std::string block_text(const Place& place);

/// "2 guests at once, nested-kvm, 2 host CPUs": a place without its vCPUs.
[[nodiscard]] std::string machine_text(const Place& place);

} // namespace spinkick::report
