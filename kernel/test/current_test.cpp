// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/test/current_test.hpp"

namespace spinkick::test {
namespace {
constinit std::string_view current{};
}

void set_current_test(std::string_view full_name) noexcept { current = full_name; }
std::string_view current_test() noexcept { return current; }

} // namespace spinkick::test
