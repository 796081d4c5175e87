// SPDX-License-Identifier: BSD-2-Clause
//
// libFuzzer's entry points. SPINKICK_FUZZ_TARGET names the parser: one program for all of them.
#include <algorithm>

#include "tests/fuzz/fuzz.hpp"
#include "tests/host/console_capture.hpp"

namespace {
const spinkick::fuzz::Target* target = nullptr;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    const char* wanted = std::getenv("SPINKICK_FUZZ_TARGET");
    for (const auto& known : spinkick::fuzz::kTargets)
        if (wanted != nullptr && known.name == wanted)
            target = &known;
    if (target == nullptr) {
        std::fprintf(stderr, "SPINKICK_FUZZ_TARGET=%s: must be one of", wanted == nullptr ? "" : wanted);
        for (const auto& known : spinkick::fuzz::kTargets)
            std::fprintf(stderr, " %.*s", static_cast<int>(known.name.size()), known.name.data());
        std::fputc('\n', stderr);
        std::exit(2);
    }
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    target->run({data, size});
    return 0;
}
