// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/cpu_features.hpp"

#include <gtest/gtest.h>

namespace spinkick::x86::cpu_features {
namespace {

TEST(CpuFeatures, TheFirstDifferingWordIsNamed) {
    Values boot{};
    for (std::size_t i = 0; i < boot.size(); ++i)
        boot[i] = static_cast<std::uint32_t>(0x1000 + i);
    EXPECT_FALSE(difference(boot, boot).has_value());
    for (std::size_t i = 0; i < boot.size(); ++i) {
        Values other = boot;
        other[i] ^= 0x80000000;
        other.back() ^= 1;
        const auto found = difference(boot, other);
        ASSERT_TRUE(found.has_value());
        EXPECT_EQ(found->word, i);
        EXPECT_EQ(found->boot, boot[i]);
        EXPECT_EQ(found->other, other[i]);
    }
}

} // namespace
} // namespace spinkick::x86::cpu_features
