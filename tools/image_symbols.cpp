// SPDX-License-Identifier: BSD-2-Clause
#include "tools/image_symbols.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>

#include <cxxabi.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <fmt/format.h>

#include "tools/text.hpp"

namespace spinkick::report {
namespace {

void erase_all(std::string& text, std::string_view part) {
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at))
        text.erase(at, part.size());
}

/// Borders of sections, which the linker script defines where the first function is, too.
bool is_border(std::string_view name) { return name.ends_with("_begin") || name.ends_with("_end"); }

/// A file that is open as ELF.
class OpenElf {
  public:
    explicit OpenElf(const std::filesystem::path& path) {
        fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd_ < 0)
            throw InputError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
        if (elf_version(EV_CURRENT) != EV_NONE)
            elf_ = elf_begin(fd_, ELF_C_READ_MMAP, nullptr);
        if (elf_ == nullptr || elf_kind(elf_) != ELF_K_ELF) {
            close();
            throw InputError(fmt::format("{}: no ELF file", path.string()));
        }
    }
    ~OpenElf() { close(); }
    OpenElf(const OpenElf&) = delete;
    OpenElf& operator=(const OpenElf&) = delete;

    [[nodiscard]] Elf* get() const { return elf_; }

  private:
    void close() {
        elf_end(elf_); // takes nullptr
        ::close(fd_);
    }
    int fd_ = -1;
    Elf* elf_ = nullptr;
};

} // namespace

std::string short_name(const char* symbol) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> plain(abi::__cxa_demangle(symbol, nullptr, nullptr, &status),
                                                            &std::free);
    std::string name = status == 0 && plain != nullptr ? plain.get() : symbol;
    erase_all(name, "spinkick::");
    erase_all(name, "(anonymous namespace)::");
    return name.substr(0, name.find('(')); // without its arguments
}

ImageSymbols::ImageSymbols(const std::filesystem::path& image) {
    const OpenElf file(image);
    std::vector<bool> is_code; // by section
    std::vector<Elf_Scn*> tables;
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(file.get(), section)) != nullptr;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == nullptr)
            continue;
        const std::size_t number = elf_ndxscn(section);
        is_code.resize(std::max(is_code.size(), number + 1));
        is_code[number] = (header.sh_flags & SHF_EXECINSTR) != 0;
        if (is_code[number])
            code_end_ = std::max(code_end_, header.sh_addr + header.sh_size);
        if (header.sh_type == SHT_SYMTAB)
            tables.push_back(section);
    }
    for (Elf_Scn* table : tables) {
        GElf_Shdr header;
        Elf_Data* const data = elf_getdata(table, nullptr);
        if (gelf_getshdr(table, &header) == nullptr || data == nullptr || header.sh_entsize == 0)
            continue;
        const auto count = static_cast<int>(header.sh_size / header.sh_entsize);
        for (int i = 0; i < count; ++i) {
            GElf_Sym symbol;
            if (gelf_getsym(data, i, &symbol) == nullptr)
                break;
            const char* const name = elf_strptr(file.get(), header.sh_link, symbol.st_name);
            if (name == nullptr || *name == '\0' || is_border(name))
                continue;
            const auto type = GELF_ST_TYPE(symbol.st_info);
            if (type == STT_OBJECT)
                objects_.push_back({symbol.st_value, symbol.st_size, short_name(name)});
            else if ((type == STT_FUNC || type == STT_NOTYPE) && symbol.st_shndx < is_code.size() &&
                     is_code[symbol.st_shndx])
                functions_.push_back({symbol.st_value, symbol.st_size, short_name(name)});
        }
    }
    if (functions_.empty())
        throw InputError(fmt::format("{}: no function in its symbol table", image.string()));
    std::stable_sort(functions_.begin(), functions_.end(),
                     [](const Symbol& a, const Symbol& b) { return a.address < b.address; });
}

std::optional<ImageSymbols::Place> ImageSymbols::function_at(std::uint64_t address) const {
    if (address >= code_end_)
        return std::nullopt;
    const auto behind = std::upper_bound(functions_.begin(), functions_.end(), address,
                                         [](std::uint64_t a, const Symbol& symbol) { return a < symbol.address; });
    if (behind == functions_.begin())
        return std::nullopt;
    const Symbol& found = *std::prev(behind);
    return Place{found.name, address - found.address};
}

std::optional<ImageSymbols::Object> ImageSymbols::object_named(std::string_view name) const {
    const auto found = std::find_if(objects_.begin(), objects_.end(), [name](const Symbol& symbol) {
        return symbol.name == name || symbol.name.ends_with("::" + std::string(name));
    });
    if (found == objects_.end())
        return std::nullopt;
    return Object{found->address, found->size};
}

} // namespace spinkick::report
