// SPDX-License-Identifier: BSD-2-Clause
//
// The back ends of this kernel and the locks on them: what the tests and benchmarks walk.
#pragma once

#include <type_traits>

#include "arch/x86/paravirt/ipi.hpp"
#include "arch/x86/paravirt/kvm.hpp"
#include "arch/x86/paravirt/native.hpp"
#include "arch/x86/paravirt/xen.hpp"
#include "kernel/sync/locks.hpp"
#include "kernel/test/test.hpp"

namespace spinkick::paravirt {

using SleepingBackends = sync::TypeList<Ipi, Kvm, Xen>;
using KernelLocks = sync::CrossLocks<Native, Ipi, Kvm, Xen>;
static_assert(sync::kAllAreLocks<KernelLocks>);

/// What a test on this back end needs, for the runner's skip.
template <class B>
[[nodiscard]] consteval test::Backend need_of() noexcept {
    if constexpr (std::is_same_v<B, Ipi>)
        return test::Backend::ipi;
    if constexpr (std::is_same_v<B, Kvm>)
        return test::Backend::kvm;
    if constexpr (std::is_same_v<B, Xen>)
        return test::Backend::xen;
    return test::Backend::native;
}

} // namespace spinkick::paravirt
