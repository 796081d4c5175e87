// SPDX-License-Identifier: BSD-2-Clause
//
// From what the log says and how the guest ended to the run's word and exit code. Silence, contradiction and doubt are
// never a pass.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/serial_stream.hpp"

namespace spinkick::report {

/// The exit codes of every program of this project.
enum class ExitCode : int { pass = 0, fail = 1, error = 2, crash = 3, skip = 77, hang = 124 };

[[nodiscard]] constexpr int raw(ExitCode code) noexcept { return static_cast<int>(code); }
[[nodiscard]] ExitCode exit_code_of(Word word) noexcept;
/// The word that wins over several runs: the first of FAIL, CRASH, HANG, ERROR, SKIP, PASS that occurred.
[[nodiscard]] Word worst(Word a, Word b) noexcept;

/// How the guest ended, as far as the runner knows.
struct Ending {
    std::optional<int> qemu_exit;
    bool timed_out = false;
    std::optional<int> xen_shutdown = {}; ///< reason of a Xen domain's end (SHUTDOWN_* of Xen's public/sched.h)
};

struct Judgement {
    Word word = Word::ERROR;
    std::string reason;             ///< why it is no plain verdict of the image; empty if it is one
    std::vector<std::string> notes; ///< oddities that do not change the word
};

[[nodiscard]] Judgement judge(const Stream& stream, const Ending& ending);

/// The exit code QEMU ends with after the image wrote its value for this word to the exit device.
[[nodiscard]] int qemu_exit_for(Word word) noexcept;

/// The results that the judgement allows to be believed, one for each planned or named test, in order of their numbers.
[[nodiscard]] std::vector<StreamTest> believed_tests(const Stream& stream, const Judgement& judgement);

} // namespace spinkick::report
