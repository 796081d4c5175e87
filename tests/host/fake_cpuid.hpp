// SPDX-License-Identifier: BSD-2-Clause
//
// CPUID as a table, for the host tests: a leaf that is not in it answers as the machine at hand would.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "arch/x86/paravirt/hypervisor.hpp"

namespace spinkick::paravirt {

class FakeCpuid {
  public:
    /// `beyond` is the answer to leaves that do not exist: zero on AMD and KVM, the highest basic leaf on Intel and
    /// TCG.
    explicit FakeCpuid(bool hypervisor_bit, CpuidResult beyond = {}) : beyond_(beyond) {
        leaves_[1] = {0, 0, hypervisor_bit ? 1u << 31 : 0, 0};
    }

    FakeCpuid& leaf(std::uint32_t number, CpuidResult result) {
        leaves_[number] = result;
        return *this;
    }
    /// The head of a block; `name` is padded with NULs.
    FakeCpuid& head(std::uint32_t base, const std::string& name, std::uint32_t max) {
        char bytes[12] = {};
        std::memcpy(bytes, name.data(), name.size() < sizeof bytes ? name.size() : sizeof bytes);
        CpuidResult result{max, 0, 0, 0};
        std::memcpy(&result.ebx, bytes, 4);
        std::memcpy(&result.ecx, bytes + 4, 4);
        std::memcpy(&result.edx, bytes + 8, 4);
        return leaf(base, result);
    }

    CpuidResult operator()(std::uint32_t number, std::uint32_t) {
        asked.push_back(number);
        const auto found = leaves_.find(number);
        return found != leaves_.end() ? found->second : beyond_;
    }

    [[nodiscard]] Hypervisors scan() {
        return paravirt::scan([this](std::uint32_t number, std::uint32_t subleaf) { return (*this)(number, subleaf); });
    }

    std::vector<std::uint32_t> asked;

  private:
    std::map<std::uint32_t, CpuidResult> leaves_;
    CpuidResult beyond_;
};

[[nodiscard]] inline std::string text_of(const Hypervisors& hypervisors) {
    char storage[400];
    TextBuffer out(storage);
    append_hypervisors(out, hypervisors);
    return std::string(out.view());
}

} // namespace spinkick::paravirt
