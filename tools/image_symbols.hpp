// SPDX-License-Identifier: BSD-2-Clause
//
// The image's functions and objects by address, from its ELF symbol table; named as the image itself names them
// (kernel/symbols.awk).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spinkick::report {

class ImageSymbols {
  public:
    struct Place {
        std::string_view function;
        std::uint64_t offset = 0;
    };
    struct Object {
        std::uint64_t address = 0;
        std::uint64_t size = 0;
    };

    /// Throws InputError for a file that is no ELF image with a symbol table.
    explicit ImageSymbols(const std::filesystem::path& image);

    /// The function that contains `address`; nothing outside the image's code.
    [[nodiscard]] std::optional<Place> function_at(std::uint64_t address) const;
    /// The object of that name, in whatever namespace.
    [[nodiscard]] std::optional<Object> object_named(std::string_view name) const;

  private:
    struct Symbol {
        std::uint64_t address;
        std::uint64_t size;
        std::string name;
    };
    std::vector<Symbol> functions_; ///< by address
    std::vector<Symbol> objects_;
    std::uint64_t code_end_ = 0;
};

/// "spinkick::x86::(anonymous namespace)::on_nmi(TrapFrame&)" is "x86::on_nmi"; a name that is not mangled stays.
[[nodiscard]] std::string short_name(const char* symbol);

} // namespace spinkick::report
