#include "arch/x86/acpi.hpp"
#include "arch/x86/paging.hpp"
#include "kernel/log.hpp"
namespace spinkick::x86::acpi {
void read(const boot::BootInfo& info, Tables& out) noexcept {
    auto* r = (const std::uint8_t*)paging::map_physical(info.rsdp_paddr ? info.rsdp_paddr : 0xf5000, 36);
    if (info.rsdp_copy_size) r = (const std::uint8_t*)info.rsdp_copy.data();
    if (!info.rsdp_paddr && !info.rsdp_copy_size) { log("no rsdp"); return; }
    std::uint64_t sdt = 0; unsigned w = 4;
    if (r[15] >= 2) { __builtin_memcpy(&sdt, r + 24, 8); w = 8; }
    if (!sdt) { w = 4; __builtin_memcpy(&sdt, r + 16, 4); }
    auto* h = (const std::uint8_t*)paging::map_physical(sdt, 4096);
    std::uint32_t len; __builtin_memcpy(&len, h + 4, 4);
    for (unsigned o = 36; o < len; o += w) {
        std::uint64_t a = 0; __builtin_memcpy(&a, h + o, w);
        auto* t = (const std::uint8_t*)paging::map_physical(a, 8192);
        std::uint32_t tl; __builtin_memcpy(&tl, t + 4, 4);
        if (!__builtin_memcmp(t, "FACP", 4)) { std::uint32_t p; __builtin_memcpy(&p, t + 76, 4); out.pm_timer_port = (std::uint16_t)p; }
        if (!__builtin_memcmp(t, "APIC", 4)) { out.madt_found = true;
            for (unsigned e = 44; e < tl && t[e+1]; e += t[e+1]) {
                if (t[e] == 0 && (t[e+4] & 1)) out.madt.cpus[out.madt.cpu_count++] = ApicId{t[e+3]};
                if (t[e] == 9 && (t[e+8] & 1)) { std::uint32_t id; __builtin_memcpy(&id, t+e+4, 4); out.madt.cpus[out.madt.cpu_count++] = ApicId{id}; }
            } }
    }
}
}
