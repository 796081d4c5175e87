#pragma once
#include <array>
#include "kernel/types.hpp"
#include "kernel/text.hpp"
namespace spinkick::x86::acpi { struct Madt { std::uint32_t cpu_count = 0; std::array<ApicId, kMaxCpus> cpus{}; }; }
