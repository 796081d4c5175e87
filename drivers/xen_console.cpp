// SPDX-License-Identifier: BSD-2-Clause
#include "drivers/xen_console.hpp"

#include "arch/x86/paravirt/hypercall.hpp"

namespace spinkick::drivers::xen_console {

bool write(std::string_view text) noexcept {
    namespace abi = paravirt::xen_abi;
    return paravirt::xen_hypercall(abi::Hypercall::console_io, abi::CONSOLEIO_write, text.size(),
                                   reinterpret_cast<std::uint64_t>(text.data()))
        .ok();
}

int read() noexcept {
    namespace abi = paravirt::xen_abi;
    char byte = 0;
    const auto result = paravirt::xen_hypercall(abi::Hypercall::console_io, abi::CONSOLEIO_read, sizeof(byte),
                                                reinterpret_cast<std::uint64_t>(&byte));
    return result.ok() && result.value == 1 ? static_cast<unsigned char>(byte) : -1;
}

} // namespace spinkick::drivers::xen_console
