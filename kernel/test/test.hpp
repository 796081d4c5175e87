// SPDX-License-Identifier: BSD-2-Clause
//
// What a test in the image is: one claim that can be false, what it needs, and a body. Tests are constant data in
// groups; a linker section holds pointers to the groups (GCC pads objects there, pointers it does not), so no
// constructor runs.
#pragma once

#include <atomic>
#include <cstdarg>
#include <cstddef>
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

/// Collects the verdict of a running test. Texts are formatted by the rules of kernel/text.hpp. Reporting is allowed
/// from any CPU and any context, NMI included: nothing here waits. Of several reports with the same severity the first
/// one's reason is kept, since the later ones usually follow from it.
class TestContext {
  public:
    explicit constexpr TestContext(std::uint64_t seed) noexcept : seed_(seed) {}
    TestContext(const TestContext&) = delete;
    TestContext& operator=(const TestContext&) = delete;

    void pass() noexcept { raise(Status::pass); }
    void skip(const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));
    /// The test or its environment is wrong.
    void error(const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));
    /// The lock or the hypervisor is wrong.
    void fail(const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

    [[nodiscard]] Status status() const noexcept {
        // acquire: pairs with the release in raise(), so that reason() finds the text of this status.
        return status_.load(std::memory_order_acquire);
    }
    /// The reason of status(); empty for none and pass.
    [[nodiscard]] const char* reason() const noexcept;
    /// Seed of this test: the run's seed mixed with the test's name, so that one test alone repeats the same choices.
    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }

    /// Forgets everything, for the next test. Nobody else may hold the context.
    void restart(std::uint64_t seed) noexcept;

  private:
    static constexpr std::size_t kReasonBytes = 200;

    /// A reason is written once, by whoever takes it first.
    enum class Taken : std::uint8_t { no, being_written, complete };
    struct Reason {
        std::atomic<Taken> taken{Taken::no};
        char text[kReasonBytes] = {};
    };

    void report(Status status, const char* format, std::va_list args) noexcept __attribute__((format(printf, 3, 0)));
    void raise(Status status) noexcept;

    std::uint64_t seed_;
    std::atomic<Status> status_{Status::none};
    Reason reasons_[3]; ///< of skip, error, fail
};

struct Test {
    std::string_view name{};      ///< "lock.mutual_exclusion": suite and claim
    std::string_view lock{};      ///< "pv-queued", or empty
    std::string_view backend{};   ///< "kvm", or empty; the full name is name/lock/backend
    std::string_view claim{};     ///< one sentence that can be false
    std::uint32_t min_cpus = 1;   ///< fewer: skip
    Backend needs = Backend::any; ///< back end that must be usable: else skip with its reason
    void (*run)(TestContext&) = nullptr;
    bool on_request = false; ///< runs only if tests= names it (negative controls that end the machine)
};

/// A span of tests that one file registers.
struct TestGroup {
    std::span<const Test> tests;
};

/// Puts a pointer to a group into the linker section that the runner walks. Once per file.
#define SPINKICK_REGISTER_TESTS(group)                                                                                 \
    [[gnu::section(".test_groups"), gnu::used,                                                                         \
      gnu::retain]] static constinit const ::spinkick::test::TestGroup* const registered_##group = &(group)

} // namespace spinkick::test
