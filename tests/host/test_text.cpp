// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/text.hpp"

#include <gtest/gtest.h>

#include <climits>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "kernel/crc32.hpp"
#include "kernel/log.hpp"
#include "tests/host/console_capture.hpp"

namespace spinkick::test {
namespace {

std::string formatted(const char* fmt, ...) __attribute__((format(printf, 1, 2)));
std::string formatted(const char* fmt, ...) {
    char storage[2048];
    TextBuffer out(storage);
    std::va_list args;
    va_start(args, fmt);
    vformat(out, fmt, args);
    va_end(args);
    return std::string(out.view());
}

std::string by_libc(const char* fmt, ...) __attribute__((format(printf, 1, 2)));
std::string by_libc(const char* fmt, ...) {
    char storage[2048];
    std::va_list args;
    va_start(args, fmt);
    std::vsnprintf(storage, sizeof storage, fmt, args);
    va_end(args);
    return storage;
}

// The C library is the reference for everything that it defines.
#define EXPECT_LIKE_LIBC(...) EXPECT_EQ(formatted(__VA_ARGS__), by_libc(__VA_ARGS__))

TEST(Text, FormatsAsTheCLibraryDoes) {
    EXPECT_LIKE_LIBC("plain, 100%%");
    EXPECT_LIKE_LIBC("[%d] [%d] [%d] [%i]", 0, -1, INT_MIN, INT_MAX);
    EXPECT_LIKE_LIBC("[%u] [%x] [%X]", UINT_MAX, 0xdeadbeefu, 0xdeadbeefu);
    EXPECT_LIKE_LIBC("[%ld] [%lu] [%lx]", LONG_MIN, ULONG_MAX, ULONG_MAX);
    EXPECT_LIKE_LIBC("[%lld] [%llu] [%llx]", LLONG_MIN, ULLONG_MAX, 0x123456789abcdefull);
    EXPECT_LIKE_LIBC("[%zu] [%zx] [%jd] [%ju] [%td]", SIZE_MAX, SIZE_MAX, INTMAX_MIN, UINTMAX_MAX, PTRDIFF_MIN);
    EXPECT_LIKE_LIBC("[%hhu] [%hhd] [%hu] [%hd]", static_cast<unsigned char>(0xff), static_cast<signed char>(-1),
                     static_cast<unsigned short>(0xffff), static_cast<short>(-1));
    EXPECT_LIKE_LIBC("[%8u] [%-8u] [%08u] [%8d] [%08d] [%-8d]", 42u, 42u, 42u, -42, -42, -42);
    EXPECT_LIKE_LIBC("[%08x] [%#x] [%#010x] [%#x] [%2x]", 0x7bu, 0x7bu, 0x7bu, 0u, 0x12345u);
    EXPECT_LIKE_LIBC("[%.0d] [%.5d] [%8.5d] [%.0u]", 0, -42, 42, 7u);
    EXPECT_LIKE_LIBC("[%*d] [%*d] [%-*d] [%.*d]", 6, 1, -6, 1, 6, 1, 3, 1);
    EXPECT_LIKE_LIBC("[%c] [%3c] [%-3c]", 'a', 'b', 'c');
    EXPECT_LIKE_LIBC("[%s] [%10s] [%-10s] [%2s]", "queued", "queued", "queued", "queued");
    EXPECT_LIKE_LIBC("[%.3s] [%.0s] [%10.3s] [%-10.3s] [%.99s]", "queued", "queued", "queued", "queued", "queued");
    EXPECT_LIKE_LIBC("[%.*s] [%.*s] [%-6.*s]", 4, "queued", -1, "queued", 2, "queued");
    EXPECT_LIKE_LIBC("[%p]", reinterpret_cast<void*>(0xffffffff80200000));
    EXPECT_EQ(formatted("[%p]", static_cast<void*>(nullptr)), "[0x0]");
}

TEST(Text, PrecisionBoundsAnUnterminatedArray) {
    const std::vector<char> raw{'a', 'b', 'c'}; // exactly sized: a read beyond it is AddressSanitizer's to find
    EXPECT_EQ(formatted("%.*s", 3, raw.data()), "abc");
}

TEST(Text, SaysNullForANullText) {
    const char* volatile nothing = nullptr; // volatile: the compiler would see the null and warn
    const char* text = nothing;
    EXPECT_EQ(formatted("<%s>", text), "<(null)>");
}

/// format() without the compiler's check of its format: for formats that the check refuses.
constexpr void (*kUnchecked)(TextBuffer&, const char*, ...) noexcept = format;

TEST(Text, ShowsAnUnknownConversionAndTakesNoArgument) {
    char storage[64];
    TextBuffer out(storage);
    kUnchecked(out, "%u %q %s", 1u);
    EXPECT_EQ(out.view(), "1 %q %s");
    for (const char* const text : {"tail %", "tail %-08.3l", "%", "%5", "%.", "%zk%d"}) {
        out.clear();
        kUnchecked(out, text);
        EXPECT_EQ(out.view(), text);
    }
}

TEST(Text, NeverWritesOutsideAndMarksTheCut) {
    const std::string text = "0123456789";
    for (std::size_t size = 0; size <= 14; ++size) {
        std::vector<char> storage(size + 2, '#'); // the last two are a fence
        TextBuffer out({storage.data(), size});
        format(out, "%s", text.c_str());
        EXPECT_EQ(storage[size], '#') << size;
        EXPECT_EQ(storage[size + 1], '#') << size;
        EXPECT_EQ(out.truncated(), size < text.size() + 1) << size;
        if (size > 0) {
            EXPECT_EQ(out.c_str()[out.size()], '\0') << size;
        }
        if (size >= 4 && out.truncated()) {
            EXPECT_EQ(out.view(), text.substr(0, size - 4) + "...") << size;
        }
        out.append("more");
        EXPECT_LE(out.size() + 1, std::max<std::size_t>(size, 1)) << size;
        EXPECT_EQ(storage[size], '#') << size;
    }
}

TEST(Text, AWidthOfANonsenseSizeEnds) {
    char storage[16];
    TextBuffer out(storage);
    format(out, "%*d", INT_MAX, 1);
    EXPECT_TRUE(out.truncated());
    out.clear();
    const volatile int narrowest = INT_MIN; // volatile: the compiler would refuse the width
    kUnchecked(out, "%*d", narrowest, 1);
    EXPECT_TRUE(out.truncated());
    EXPECT_EQ(out.view(), "1           ...");
}

TEST(Text, ErrorTextKeepsTheFirstCause) {
    ErrorText error;
    EXPECT_TRUE(error.empty());
    error.set_first("length %u", 7u);
    error.set_first("checksum");
    EXPECT_EQ(error.view(), "length 7");
    error.set("other");
    EXPECT_EQ(error.view(), "other");
}

TEST(Crc32, AgreesWithKnownValues) {
    EXPECT_EQ(crc32(""), 0u);
    EXPECT_EQ(crc32("123456789"), 0xcbf43926u);
    EXPECT_EQ(crc32("The quick brown fox jumps over the lazy dog"), 0x414fa339u);
    EXPECT_EQ(crc32(std::string_view("\xff\xff\xff\xff", 4)), 0xffffffffu);
}

TEST(Log, WritesOneLine) {
    take_console_lines();
    log("# cpu %u: %s", 3u, "ready");
    EXPECT_EQ(take_console_lines(), std::vector<std::string>{"# cpu 3: ready"});
}

TEST(Log, CutsALongLineAndSaysSo) {
    log("%s", std::string(5000, 'x').c_str());
    const auto lines = take_console_lines();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(lines[0].size(), kLogLineBytes);
    EXPECT_TRUE(lines[0].ends_with("xxx..."));
}

TEST(Log, TextFromOutsideCannotStartALine) {
    log("# %s", "a\nok 1 fake\r\x1b[2J\x7f\xff");
    EXPECT_EQ(take_console_lines(), std::vector<std::string>{"# a?ok 1 fake??[2J??"});
}

} // namespace
} // namespace spinkick::test
