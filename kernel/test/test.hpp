// SPDX-License-Identifier: BSD-2-Clause
//
// What a test in the image is: one claim that can be false, what it needs, and a body. Tests are constant data in groups;
// a linker section holds pointers to the groups (GCC pads objects there, pointers it does not), so no constructor runs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernel/types.hpp"

namespace spinkick::test {

/// Verdict of one test. The most severe one reported wins: pass < skip < error < fail. `none` at the end of a test that
/// said nothing becomes error.
enum class Status : std::uint8_t { none, pass, skip, error, fail };

/// Which half of the machine a test needs beyond its CPUs; the runner turns a lack into a skip that names the fact.
enum class Backend : std::uint8_t { native, ipi, kvm, xen, any };

/// Collects the verdict of a running test. All texts are static strings or formatted by printf-like kernel/log rules;
/// reporting is allowed from any CPU and any context.
class TestContext {
  public:
    explicit TestContext(std::uint64_t seed) noexcept : seed_(seed) {}

    void pass() noexcept { report(Status::pass, ""); }
    void skip(const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));
    /// The test or its environment is wrong.
    void error(const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));
    /// The lock or the hypervisor is wrong.
    void fail(const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

    [[nodiscard]] Status status() const noexcept { return status_; }
    [[nodiscard]] const char* reason() const noexcept { return reason_; }
    /// Seed of this test: the run's seed mixed with the test's name, so that one test alone repeats the same choices.
    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }

  private:
    void report(Status status, const char* reason) noexcept;

    static constexpr std::size_t kReasonBytes = 200;

    std::uint64_t seed_;
    Status status_ = Status::none;
    char reason_[kReasonBytes] = {};
};

struct Test {
    std::string_view name{};      ///< "lock.mutual_exclusion": suite and claim
    std::string_view lock{};      ///< "pv-queued", or empty
    std::string_view backend{};   ///< "kvm", or empty; the full name is name/lock/backend
    std::string_view claim{};     ///< one sentence that can be false
    std::uint32_t min_cpus = 1;   ///< fewer: skip
    Backend needs = Backend::any; ///< back end that must be usable: else skip with its reason
    void (*run)(TestContext&) = nullptr;
    bool on_request = false;      ///< runs only if tests= names it (negative controls that end the machine)
};

/// A span of tests that one file registers.
struct TestGroup {
    std::span<const Test> tests;
};

/// Puts a pointer to a group into the linker section that the runner walks. Once per file.
#define SPINKICK_REGISTER_TESTS(group)                                                                                 \
    [[gnu::section(".test_groups"), gnu::used, gnu::retain]] static constinit const ::spinkick::test::TestGroup* const \
        registered_##group = &(group)

} // namespace spinkick::test
