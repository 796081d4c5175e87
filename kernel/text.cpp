// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/text.hpp"

#include <cstdint>

namespace spinkick {
namespace {

// A literal with its length: from a bare one, string_view would call strlen, which the kernel does not have.
using namespace std::string_view_literals;

/// Length of the argument, as the letters before the conversion say.
enum class Length : std::uint8_t { int_, char_, short_, long_, long_long, size, intmax, ptrdiff };

struct Conversion {
    bool left = false;
    bool zero = false;
    bool prefix = false; // '#': 0x before a non-zero hexadecimal number
    std::size_t width = 0;
    bool has_precision = false;
    std::size_t precision = 0;
    Length length = Length::int_;
};

/// va_list is an array type here: as a parameter it decays, so it travels in a structure.
struct Arguments {
    std::va_list list;
};

/// A width beyond this is a fault of the caller and would only fill the buffer.
constexpr std::size_t kWidestField = 1024;

std::size_t read_number(const char*& p) noexcept {
    std::size_t n = 0;
    for (; *p >= '0' && *p <= '9'; ++p)
        if (n <= kWidestField)
            n = n * 10 + static_cast<std::size_t>(*p - '0');
    return n < kWidestField ? n : kWidestField;
}

Length read_length(const char*& p) noexcept {
    switch (*p) {
    case 'h':
        ++p;
        return *p == 'h' ? (++p, Length::char_) : Length::short_;
    case 'l':
        ++p;
        return *p == 'l' ? (++p, Length::long_long) : Length::long_;
    case 'z':
        ++p;
        return Length::size;
    case 'j':
        ++p;
        return Length::intmax;
    case 't':
        ++p;
        return Length::ptrdiff;
    default:
        return Length::int_;
    }
}

constexpr bool kLp64 = sizeof(std::size_t) == sizeof(long) && sizeof(std::intmax_t) == sizeof(long) &&
                       sizeof(std::ptrdiff_t) == sizeof(long);
static_assert(kLp64, "l, z, j and t take the same argument");

std::int64_t take_signed(Arguments& args, Length length) noexcept {
    switch (length) {
    case Length::char_:
        return static_cast<signed char>(va_arg(args.list, int));
    case Length::short_:
        return static_cast<short>(va_arg(args.list, int));
    case Length::long_:
    case Length::size: // its signed twin has no portable name
    case Length::intmax:
    case Length::ptrdiff:
        return va_arg(args.list, long); // see kLp64
    case Length::long_long:
        return va_arg(args.list, long long);
    case Length::int_:
        break;
    }
    return va_arg(args.list, int);
}

std::uint64_t take_unsigned(Arguments& args, Length length) noexcept {
    switch (length) {
    case Length::char_:
        return static_cast<unsigned char>(va_arg(args.list, unsigned));
    case Length::short_:
        return static_cast<unsigned short>(va_arg(args.list, unsigned));
    case Length::long_:
    case Length::size:
    case Length::intmax:
    case Length::ptrdiff:
        return va_arg(args.list, unsigned long); // see kLp64
    case Length::long_long:
        return va_arg(args.list, unsigned long long);
    case Length::int_:
        break;
    }
    return va_arg(args.list, unsigned);
}

void put_text(TextBuffer& out, std::string_view text, const Conversion& how) noexcept {
    const std::size_t pad = how.width > text.size() ? how.width - text.size() : 0;
    if (!how.left)
        out.fill(' ', pad);
    out.append(text);
    if (how.left)
        out.fill(' ', pad);
}

/// The longest digit string is 2^64 - 1 in decimal.
constexpr std::size_t kMostDigits = 20;

void put_number(TextBuffer& out, std::uint64_t value, unsigned base, bool upper, std::string_view sign,
                const Conversion& how) noexcept {
    char digits[kMostDigits];
    std::size_t n = 0;
    const char* const alphabet = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    for (; value != 0; value /= base)
        digits[n++] = alphabet[value % base];
    std::size_t least = how.has_precision ? how.precision : 1; // digits, filled up with zeros
    if (how.zero && !how.left && !how.has_precision && how.width > sign.size() + least)
        least = how.width - sign.size();
    const std::size_t zeros = least > n ? least - n : 0;
    const std::size_t total = sign.size() + zeros + n;
    const std::size_t pad = how.width > total ? how.width - total : 0;
    if (!how.left)
        out.fill(' ', pad);
    out.append(sign);
    out.fill('0', zeros);
    while (n > 0)
        out.append(digits[--n]);
    if (how.left)
        out.fill(' ', pad);
}

/// As strnlen: a %.*s argument need not be terminated.
std::size_t bounded_length(const char* text, const Conversion& how) noexcept {
    std::size_t n = 0;
    while ((!how.has_precision || n < how.precision) && text[n] != '\0')
        ++n;
    return n;
}

Conversion read_conversion(const char*& p, Arguments& args) noexcept {
    Conversion how;
    for (;; ++p) {
        if (*p == '-')
            how.left = true;
        else if (*p == '0')
            how.zero = true;
        else if (*p == '#')
            how.prefix = true;
        else
            break;
    }
    if (*p == '*') {
        ++p;
        const int width = va_arg(args.list, int);
        how.left = how.left || width < 0;
        const std::uint64_t magnitude =
            width < 0 ? 0 - static_cast<std::uint64_t>(width) : static_cast<unsigned>(width);
        how.width = magnitude < kWidestField ? magnitude : kWidestField;
    } else {
        how.width = read_number(p);
    }
    if (*p == '.') {
        ++p;
        how.has_precision = true;
        if (*p == '*') {
            ++p;
            const int precision = va_arg(args.list, int);
            how.has_precision = precision >= 0; // C: a negative one counts as missing
            how.precision = precision >= 0 ? static_cast<std::size_t>(precision) : 0;
        } else {
            how.precision = read_number(p);
        }
    }
    how.length = read_length(p);
    return how;
}

/// False if the conversion is not known.
bool put_conversion(TextBuffer& out, char conversion, const Conversion& how, Arguments& args) noexcept {
    switch (conversion) {
    case '%':
        out.append('%');
        return true;
    case 'c': {
        const char c = static_cast<char>(va_arg(args.list, int));
        put_text(out, {&c, 1}, how);
        return true;
    }
    case 's': {
        const char* const text = va_arg(args.list, const char*);
        const char* const shown = text != nullptr ? text : "(null)";
        put_text(out, {shown, bounded_length(shown, how)}, how);
        return true;
    }
    case 'd':
    case 'i': {
        const std::int64_t value = take_signed(args, how.length);
        const auto bits = static_cast<std::uint64_t>(value);
        put_number(out, value < 0 ? 0 - bits : bits, 10, false, value < 0 ? "-"sv : ""sv, how);
        return true;
    }
    case 'u':
        put_number(out, take_unsigned(args, how.length), 10, false, ""sv, how);
        return true;
    case 'x':
    case 'X': {
        const std::uint64_t value = take_unsigned(args, how.length);
        put_number(out, value, 16, conversion == 'X', how.prefix && value != 0 ? "0x"sv : ""sv, how);
        return true;
    }
    case 'p':
        put_number(out, reinterpret_cast<std::uintptr_t>(va_arg(args.list, void*)), 16, false, "0x"sv, how);
        return true;
    default:
        return false;
    }
}

} // namespace

void vformat(TextBuffer& out, const char* fmt, std::va_list args) noexcept {
    Arguments taken;
    va_copy(taken.list, args);
    const char* p = fmt;
    while (*p != '\0') {
        if (*p != '%') {
            out.append(*p++);
            continue;
        }
        const char* const start = p++;
        const Conversion how = read_conversion(p, taken);
        if (*p == '\0' || !put_conversion(out, *p, how, taken)) {
            for (p = start; *p != '\0'; ++p)
                out.append(*p);
            break;
        }
        ++p;
    }
    va_end(taken.list);
}

void format(TextBuffer& out, const char* fmt, ...) noexcept {
    std::va_list args;
    va_start(args, fmt);
    vformat(out, fmt, args);
    va_end(args);
}

} // namespace spinkick
