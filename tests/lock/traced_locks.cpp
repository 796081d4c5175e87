// SPDX-License-Identifier: BSD-2-Clause
//
// The kernel's locks, traced, as the tests use them: their code, once for all tests.
#include "arch/x86/paravirt/backends.hpp"
#include "kernel/stress/traced_lock_code.hpp"
#include "kernel/sync/locks.hpp"

namespace spinkick::lock_tests {
namespace {

/// What is pointed at is compiled.
template <class L>
struct Code {
    using T = stress::Traced<L>;
    decltype(&T::lock) lock = &T::lock;
    decltype(&T::try_lock) try_lock = &T::try_lock;
    decltype(&T::unlock) unlock = &T::unlock;
};

template <class List>
struct CodeOf;
template <class... Ls>
struct CodeOf<sync::TypeList<Ls...>> : Code<Ls>... {};

[[gnu::used]] constinit const CodeOf<paravirt::KernelLocks> all_code{};

} // namespace
} // namespace spinkick::lock_tests
