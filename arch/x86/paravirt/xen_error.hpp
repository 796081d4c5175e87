// SPDX-License-Identifier: BSD-2-Clause
//
// What Xen said, for a line that a person reads: "-1 EPERM" (numbers of Xen xen/include/public/errno.h).
#pragma once

#include <array>
#include <cstdint>

#include "arch/x86/paravirt/hypercall.hpp"
#include "kernel/text.hpp"

namespace spinkick::paravirt {

/// "EPERM" for -1; "unknown" for a number that Xen gives no name.
[[nodiscard]] constexpr const char* xen_error_name(std::int64_t error) noexcept {
    struct Named {
        std::int16_t number;
        const char* name;
    };
    constexpr std::array kNamed = {
        Named{1, "EPERM"},     Named{2, "ENOENT"},      Named{3, "ESRCH"},       Named{4, "EINTR"},
        Named{5, "EIO"},       Named{6, "ENXIO"},       Named{7, "E2BIG"},       Named{8, "ENOEXEC"},
        Named{9, "EBADF"},     Named{10, "ECHILD"},     Named{11, "EAGAIN"},     Named{12, "ENOMEM"},
        Named{13, "EACCES"},   Named{14, "EFAULT"},     Named{16, "EBUSY"},      Named{17, "EEXIST"},
        Named{18, "EXDEV"},    Named{19, "ENODEV"},     Named{20, "ENOTDIR"},    Named{21, "EISDIR"},
        Named{22, "EINVAL"},   Named{23, "ENFILE"},     Named{28, "ENOSPC"},     Named{30, "EROFS"},
        Named{31, "EMLINK"},   Named{33, "EDOM"},       Named{34, "ERANGE"},     Named{35, "EDEADLK"},
        Named{38, "ENOSYS"},   Named{39, "ENOTEMPTY"},  Named{61, "ENODATA"},    Named{62, "ETIME"},
        Named{74, "EBADMSG"},  Named{75, "EOVERFLOW"},  Named{84, "EILSEQ"},     Named{85, "ERESTART"},
        Named{88, "ENOTSOCK"}, Named{95, "EOPNOTSUPP"}, Named{98, "EADDRINUSE"}, Named{99, "EADDRNOTAVAIL"},
        Named{105, "ENOBUFS"}, Named{106, "EISCONN"},   Named{107, "ENOTCONN"},  Named{110, "ETIMEDOUT"},
    };
    for (const auto& named : kNamed)
        if (error == -named.number)
            return named.name;
    return "unknown";
}
static_assert(xen_error_name(-38)[3] == 'S' && xen_error_name(38)[0] == 'u');

using XenErrorText = FixedText<48>;

[[nodiscard]] inline XenErrorText xen_error_text(std::int64_t value) noexcept {
    XenErrorText text;
    if (value < 0)
        text.set("%lld %s", static_cast<long long>(value), xen_error_name(value));
    else
        text.set("%lld", static_cast<long long>(value));
    return text;
}

/// The same for a call that may have been refused by an exception.
[[nodiscard]] inline XenErrorText xen_error_text(const HypercallResult& result) noexcept {
    if (!result.fault.happened)
        return xen_error_text(result.value);
    XenErrorText text;
    text.set("exception %u", result.fault.vector);
    return text;
}

} // namespace spinkick::paravirt
