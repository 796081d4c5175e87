// SPDX-License-Identifier: BSD-2-Clause
//
// One run: serial logs in, results out.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/host_counters.hpp"
#include "tools/results.hpp"

namespace spinkick::report {

/// What the runner knows about a run and the image cannot.
struct RunFacts {
    std::string platform;
    std::string timing;
    std::optional<std::string> image;
    std::optional<std::string> image_sha256;
    std::optional<std::uint32_t> pcpus;
    RunId id;
    Ending ending;
    std::vector<std::string> host_facts{};      ///< "kernel=6.1.0", for the context record
    std::optional<std::string> host_counters{}; ///< "halt_exits=12 ...": asked for; perhaps empty
    HostSyncs host_syncs{};                     ///< the same at each sync point
};

/// Reads the logs one after another as one stream.
[[nodiscard]] Stream read_logs(const std::vector<std::filesystem::path>& logs);

[[nodiscard]] Results results_of(const Stream& stream, const RunFacts& facts);

} // namespace spinkick::report
