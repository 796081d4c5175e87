// SPDX-License-Identifier: BSD-2-Clause
#include "tools/workload.hpp"

#include <fmt/format.h>

#include "tools/text.hpp"

namespace spinkick::report {

std::vector<WorkloadRecord> workload_records(const Results& results, std::string_view bench) {
    std::vector<WorkloadRecord> records;
    Places places(results);
    for (const Json& record : results.records)
        if (is_type(record, "bench") && text_in(record, "bench") == bench)
            records.push_back({places.of(record), text_in(record, "lock"), text_in(record, "backend"), &record});
    return records;
}

std::vector<std::string> sleeping_backends(const std::vector<WorkloadRecord>& records) {
    std::vector<std::string> names;
    for (const WorkloadRecord& record : records)
        if (record.backend != "native" && std::find(names.begin(), names.end(), record.backend) == names.end())
            names.push_back(record.backend);
    std::stable_partition(names.begin(), names.end(), [](const std::string& name) { return name != "ipi"; });
    if (names.empty())
        names.emplace_back();
    return names;
}

std::string block_text(const Place& place) {
    const auto factor = place.overcommit();
    return text_of(place) + (factor ? fmt::format(", overcommit {:.3g}x", *factor) : "");
}

std::string machine_text(const Place& place) {
    return fmt::format("{}{}{}", place.guests > 1 ? fmt::format("{} guests at once, ", place.guests) : "",
                       printable(place.platform),
                       place.pcpus ? fmt::format(", {} host CPU{}", *place.pcpus, *place.pcpus == 1 ? "" : "s") : "");
}

} // namespace spinkick::report
