// SPDX-License-Identifier: BSD-2-Clause
//
// `trace` records as a file in the Chrome trace event format, which Perfetto (ui.perfetto.dev) and chrome://tracing
// open: a process for each lock that was traced, a track for each vCPU, slices for waits, halts, holds and kicks,
// arrows from a kick to the halt it ended and from a release to the next acquisition, and steal time as a counter.
//
// The format: "Trace Event Format" (Google, document 1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU).
#pragma once

#include "tools/results.hpp"

namespace spinkick::report {

/// The whole file as JSON; null if there is no `trace` record. A record that cannot be read is left out, and a
/// `metadata` entry says so.
[[nodiscard]] Json trace_of(const Results& results);

} // namespace spinkick::report
