// SPDX-License-Identifier: BSD-2-Clause
//
// The four functions that a freestanding compiler may call by itself, and the one that a pure virtual table would.
#include <cstddef>
#include <cstdint>

extern "C" {

void* memset(void* destination, int value, std::size_t count) noexcept {
    auto* out = static_cast<volatile unsigned char*>(destination);
    for (std::size_t i = 0; i < count; ++i)
        out[i] = static_cast<unsigned char>(value);
    return destination;
}

void* memcpy(void* destination, const void* source, std::size_t count) noexcept {
    auto* out = static_cast<volatile unsigned char*>(destination);
    const auto* in = static_cast<const unsigned char*>(source);
    for (std::size_t i = 0; i < count; ++i)
        out[i] = in[i];
    return destination;
}

void* memmove(void* destination, const void* source, std::size_t count) noexcept {
    auto* out = static_cast<volatile unsigned char*>(destination);
    const auto* in = static_cast<const unsigned char*>(source);
    if (reinterpret_cast<std::uintptr_t>(destination) <= reinterpret_cast<std::uintptr_t>(source)) {
        for (std::size_t i = 0; i < count; ++i)
            out[i] = in[i];
    } else {
        for (std::size_t i = count; i-- > 0;)
            out[i] = in[i];
    }
    return destination;
}

int memcmp(const void* left, const void* right, std::size_t count) noexcept {
    const auto* a = static_cast<const unsigned char*>(left);
    const auto* b = static_cast<const unsigned char*>(right);
    for (std::size_t i = 0; i < count; ++i)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

std::size_t strlen(const char* text) noexcept {
    std::size_t length = 0;
    while (static_cast<const volatile char*>(text)[length] != 0)
        ++length;
    return length;
}

} // extern "C"
