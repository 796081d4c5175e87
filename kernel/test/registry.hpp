// SPDX-License-Identifier: BSD-2-Clause
//
// All tests of the image, in the order in which they were linked, and their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernel/test/test.hpp"
#include "kernel/text.hpp"

// From linker.ld: the pointers that SPINKICK_REGISTER_TESTS put into .test_groups.
// NOLINTBEGIN(bugprone-dynamic-static-initializers): the linker defines them, nothing initialises them
extern "C" {
extern const spinkick::test::TestGroup* const test_groups_begin[];
extern const spinkick::test::TestGroup* const test_groups_end[];
}
// NOLINTEND(bugprone-dynamic-static-initializers)

namespace spinkick::test {

/// Most tests of an image; the selection is an array of this size.
inline constexpr std::size_t kMostTests = 1024;
/// Longest name, with lock and back end.
inline constexpr std::size_t kNameBytes = 120;

/// `name/lock/backend` without the parts that are empty.
class TestName {
  public:
    explicit TestName(const Test& test) noexcept;

    [[nodiscard]] std::string_view view() const noexcept { return {storage_, size_}; }
    [[nodiscard]] bool too_long() const noexcept { return too_long_; }
    /// FNV-1a, 64 bits: the same name has the same hash in every image.
    [[nodiscard]] std::uint64_t hash() const noexcept;

  private:
    char storage_[kNameBytes + 1];
    std::size_t size_ = 0;
    bool too_long_ = false;
};

class Registry {
  public:
    explicit constexpr Registry(std::span<const TestGroup* const> groups) noexcept : groups_(groups) {}

    /// The tests that were linked into this image.
    [[nodiscard]] static Registry linked() noexcept {
        return Registry({test_groups_begin, static_cast<std::size_t>(test_groups_end - test_groups_begin)});
    }

    /// Calls `visit(test)` in link order until it returns false; true if all were visited.
    template <class Visit>
    bool for_each(Visit visit) const noexcept {
        for (const TestGroup* group : groups_)
            for (const Test& test : group->tests)
                if (!visit(test))
                    return false;
        return true;
    }

    /// False if a name is not well formed or stands twice; `error` names it. A reader finds a test by its name, so two
    /// of one name would collapse into the verdict of the later one.
    [[nodiscard]] bool check(ErrorText& error) const noexcept;

  private:
    std::span<const TestGroup* const> groups_;
};

} // namespace spinkick::test
