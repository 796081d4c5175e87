// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/test/test.hpp"

#include "kernel/text.hpp"

namespace spinkick::test {
namespace {

constexpr std::size_t slot(Status status) noexcept {
    return static_cast<std::size_t>(status) - static_cast<std::size_t>(Status::skip);
}

} // namespace

void TestContext::raise(Status status) noexcept {
    Status seen = status_.load(std::memory_order_relaxed);
    // release: whoever sees this status finds its reason written. A failed exchange has seen another report; only a
    // more severe one ends the loop, and there are four severities.
    while (seen < status &&
           !status_.compare_exchange_weak(seen, status, std::memory_order_release, std::memory_order_relaxed)) {
    }
}

void TestContext::report(Status status, const char* format, std::va_list args) noexcept {
    Reason& reason = reasons_[slot(status)];
    // relaxed: the exchange only elects the writer; the text is published by the release below.
    if (Taken expected = Taken::no; reason.taken.compare_exchange_strong(
            expected, Taken::being_written, std::memory_order_relaxed, std::memory_order_relaxed)) {
        TextBuffer text(reason.text);
        vformat(text, format, args);
        replace_control_characters({reason.text, text.size()});
        // release: pairs with the acquire in reason().
        reason.taken.store(Taken::complete, std::memory_order_release);
    }
    raise(status);
}

const char* TestContext::reason() const noexcept {
    const Status now = status();
    if (now < Status::skip)
        return "";
    const Reason& reason = reasons_[slot(now)];
    // acquire: pairs with the release in report().
    if (reason.taken.load(std::memory_order_acquire) != Taken::complete)
        return "(the CPU that reports the reason has not finished it)";
    return reason.text;
}

void TestContext::restart(std::uint64_t seed) noexcept {
    seed_ = seed;
    // relaxed: nobody else holds the context.
    for (Reason& reason : reasons_)
        reason.taken.store(Taken::no, std::memory_order_relaxed);
    status_.store(Status::none, std::memory_order_relaxed);
}

void TestContext::skip(const char* format, ...) noexcept {
    std::va_list args;
    va_start(args, format);
    report(Status::skip, format, args);
    va_end(args);
}

void TestContext::error(const char* format, ...) noexcept {
    std::va_list args;
    va_start(args, format);
    report(Status::error, format, args);
    va_end(args);
}

void TestContext::fail(const char* format, ...) noexcept {
    std::va_list args;
    va_start(args, format);
    report(Status::fail, format, args);
    va_end(args);
}

} // namespace spinkick::test
