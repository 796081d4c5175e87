// SPDX-License-Identifier: BSD-2-Clause
//
// The name of the test that runs, for whoever reports a fault from anywhere.
#pragma once

#include <string_view>

namespace spinkick::test {

/// Empty outside of tests. The text must outlive the test.
void set_current_test(std::string_view full_name) noexcept;
[[nodiscard]] std::string_view current_test() noexcept;

} // namespace spinkick::test
