// SPDX-License-Identifier: BSD-2-Clause
#include "arch/x86/paravirt/pvclock.hpp"

#include <gtest/gtest.h>

#include <random>

namespace spinkick::paravirt::pvclock {
namespace {

__extension__ using Wide = unsigned __int128;

TEST(Pvclock, ScaleIsTheWideProduct) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 200000; ++i) {
        const std::uint64_t delta = random() >> (random() % 64);
        const auto mul = static_cast<std::uint32_t>(random() >> (random() % 64));
        const auto shift = static_cast<std::int8_t>(static_cast<int>(random() % 41) - 20);
        const std::uint64_t shifted = shift >= 0 ? delta << shift : delta >> -shift;
        EXPECT_EQ(scale(delta, mul, shift), static_cast<std::uint64_t>((Wide{shifted} * mul) >> 32));
    }
}

/// mul and shift as a hypervisor computes them for a frequency: a multiplier in the upper half of its 32 bits.
void parameters_of(double khz, std::uint32_t& mul, std::int8_t& shift) {
    double ns_per_tick = 1e6 / khz;
    shift = 0;
    while (ns_per_tick >= 1.0)
        ns_per_tick /= 2, ++shift;
    while (ns_per_tick < 0.5)
        ns_per_tick *= 2, --shift;
    mul = static_cast<std::uint32_t>(ns_per_tick * 4294967296.0);
}

TEST(Pvclock, FrequencyComesBack) {
    for (const double khz : {1000.0, 999999.0, 1000000.0, 1000001.0, 2095994.0, 2994371.0, 5200000.0}) {
        std::uint32_t mul = 0;
        std::int8_t shift = 0;
        parameters_of(khz, mul, shift);
        EXPECT_NEAR(static_cast<double>(khz_of(mul, shift)), khz, khz / 1e6 + 1) << khz;
    }
}

TEST(Pvclock, AbsurdParametersGiveNoFrequency) {
    EXPECT_EQ(khz_of(0, 0), 0u);
    EXPECT_EQ(khz_of(1u << 31, 127), 0u);
    EXPECT_EQ(khz_of(1u << 31, -128), 0u);
    EXPECT_EQ(khz_of(1, -20), 0u); // more ticks than 64 bits hold
}

TimeInfo page_with(std::uint32_t version, std::uint64_t system_time) {
    TimeInfo page{};
    page.version = version;
    page.system_time = system_time;
    page.tsc_timestamp = 1000;
    page.tsc_to_system_mul = 1u << 31;
    page.tsc_shift = 1; // 1 GHz
    return page;
}

TEST(Pvclock, QuietPageIsReadAtOnce) {
    const auto page = page_with(4, 77);
    Reading reading;
    ASSERT_TRUE(read(page, reading));
    EXPECT_EQ(reading.retries, 0u);
    EXPECT_EQ(reading.system_time, 77u);
    EXPECT_EQ(reading.at(Tsc{1500}).value, 77u + 500);
    EXPECT_EQ(reading.at(Tsc{500}).value, 77u) << "a counter behind the timestamp is not far ahead of it";
}

TEST(Pvclock, APageThatChangesUnderTheReaderIsReadAgain) {
    auto page = page_with(4, 1);
    int writes = 0;
    Reading reading;
    ASSERT_TRUE(read(page, reading, [&] {
        if (writes++ < 3)
            page.version += 2, page.system_time += 1;
    }));
    EXPECT_EQ(reading.retries, 3u);
    EXPECT_EQ(reading.system_time, 4u);
}

TEST(Pvclock, AWriteInProgressIsWaitedFor) {
    auto page = page_with(5, 1);
    int looks = 0;
    Reading reading;
    ASSERT_TRUE(read(page, reading, [&] {
        if (++looks == 7)
            page.version = 6, page.system_time = 2;
    }));
    EXPECT_EQ(reading.system_time, 2u);
}

TEST(Pvclock, AWriterThatNeverEndsIsGivenUp) {
    auto page = page_with(5, 1);
    Reading reading;
    EXPECT_FALSE(read(page, reading));
    page.version = 4;
    EXPECT_FALSE(read(page, reading, [&] { page.version += 2; }));
}

} // namespace
} // namespace spinkick::paravirt::pvclock
