// SPDX-License-Identifier: BSD-2-Clause
#include "drivers/xen_console_ring.hpp"

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "arch/x86/paravirt/xen_error.hpp"

namespace spinkick::drivers {
namespace {

/// The other end, and the time that passes while the guest waits for it.
struct Reader {
    xencons_interface page{};
    std::string read;
    std::uint64_t now = 0;
    int events = 0, rests = 0;
    std::function<void()> on_rest;

    void take(std::size_t most = ~std::size_t{0}) {
        for (; most != 0 && page.out_cons != page.out_prod; --most)
            read += page.out[page.out_cons++ % page.out.size()];
    }
};
Reader* reader = nullptr;

class XenConsoleRingTest : public testing::Test {
  protected:
    XenConsoleRingTest() { reader = &end_; }
    ~XenConsoleRingTest() override { reader = nullptr; }

    Reader end_;
    XenConsoleRing ring_{{[]() noexcept { ++reader->events; },
                          []() noexcept {
                              ++reader->rests;
                              reader->now += 1000;
                              if (reader->on_rest)
                                  reader->on_rest();
                          },
                          []() noexcept { return reader->now += 10; }}};
};

TEST_F(XenConsoleRingTest, OneEventForALineAndNoneForItsParts) {
    ring_.attach(&end_.page);
    ring_.write("a line");
    EXPECT_EQ(end_.events, 0);
    ring_.write("\n");
    EXPECT_EQ(end_.events, 1);
    end_.take();
    EXPECT_EQ(end_.read, "a line\n");
    EXPECT_EQ(ring_.lost(), 0u);
}

TEST_F(XenConsoleRingTest, IndicesWrapAroundTheEndOfTheRingAndOf32Bits) {
    ring_.attach(&end_.page);
    end_.page.out_cons = end_.page.out_prod = 0xffffffff - 100; // both wraps within the next bytes
    std::string all;
    for (int i = 0; i < 300; ++i) {
        const auto line = "line " + std::to_string(i) + "\n";
        all += line;
        ring_.write(line);
        end_.take();
    }
    EXPECT_EQ(end_.read, all);
}

TEST_F(XenConsoleRingTest, TextLongerThanTheRingWaitsForASlowReaderAndLosesNothing) {
    ring_.attach(&end_.page);
    end_.on_rest = [] { reader->take(7); };
    std::string text;
    for (int i = 0; i < 10'000; ++i)
        text += static_cast<char>('a' + i % 26);
    text += '\n';
    ring_.write(text);
    ring_.drain();
    EXPECT_EQ(end_.page.out_cons, end_.page.out_prod);
    EXPECT_EQ(end_.read, text);
    EXPECT_EQ(ring_.lost(), 0u);
    EXPECT_GT(end_.rests, 0);
}

TEST_F(XenConsoleRingTest, ADeadReaderCostsOneLongWaitAndThenShortOnes) {
    ring_.attach(&end_.page);
    const std::string text(2048 + 52, 'x');
    ring_.write(text);
    EXPECT_EQ(ring_.lost(), 52u);
    EXPECT_GE(end_.now, XenConsoleRing::kPatient);
    EXPECT_LT(end_.now, XenConsoleRing::kPatient + XenConsoleRing::kImpatient);

    const auto before = end_.now;
    for (int i = 0; i < 100; ++i)
        ring_.write("more\n");
    ring_.drain();
    EXPECT_EQ(ring_.lost(), 52u + 500u);
    EXPECT_LT(end_.now - before, 103 * 2 * XenConsoleRing::kImpatient);
}

TEST_F(XenConsoleRingTest, AReaderThatComesBackIsToldWhatItMissed) {
    ring_.attach(&end_.page);
    ring_.write(std::string(2048, 'x') + "lost\n");
    EXPECT_EQ(ring_.lost(), 5u);
    end_.take();
    end_.read.clear();
    ring_.write("back\n");
    end_.take();
    EXPECT_EQ(end_.read, "\n# console: 5 bytes lost: nobody took them in time\nback\n");
    end_.read.clear();
    ring_.write("once\n");
    end_.take();
    EXPECT_EQ(end_.read, "once\n"); // said once
    EXPECT_EQ(ring_.lost(), 5u);    // and still counted

    const auto before = end_.now; // and it is waited for as before
    ring_.write(std::string(2049, 'y'));
    EXPECT_GE(end_.now - before, XenConsoleRing::kPatient);
}

TEST_F(XenConsoleRingTest, IndicesThatCannotBeEndTheRingAtOnce) {
    ring_.attach(&end_.page);
    end_.page.out_cons = 5; // ahead of what was written
    end_.page.in.fill('i');
    ring_.write("text\n");
    EXPECT_TRUE(ring_.is_broken());
    EXPECT_EQ(ring_.lost(), 5u);
    EXPECT_EQ(end_.page.out_prod, 0u);
    EXPECT_LT(end_.now, XenConsoleRing::kImpatient);
    end_.page.out_cons = 0;
    ring_.write("text\n");
    EXPECT_EQ(end_.page.out_prod, 0u); // for good
}

TEST_F(XenConsoleRingTest, NothingIsWrittenOutsideOfTheRing) {
    ring_.attach(&end_.page);
    end_.page.in.fill('i');
    end_.page.in_cons = 17;
    end_.page.in_prod = 18;
    end_.on_rest = [] { reader->take(); };
    ring_.write(std::string(5000, 'o'));
    EXPECT_EQ(std::string(end_.page.in.begin(), end_.page.in.end()), std::string(1024, 'i'));
    EXPECT_EQ(end_.page.in_cons, 17u);
    EXPECT_EQ(end_.page.in_prod, 18u);
}

TEST_F(XenConsoleRingTest, BytesWithoutAPageAreLostAndSaidLater) {
    ring_.write("early\n");
    EXPECT_EQ(ring_.lost(), 6u);
    ring_.drain();
    ring_.attach(&end_.page);
    ring_.write("on\n");
    end_.take();
    EXPECT_EQ(end_.read, "\n# console: 6 bytes lost: nobody took them in time\non\n");
}

TEST_F(XenConsoleRingTest, InputComesInOrderAndWraps) {
    EXPECT_EQ(ring_.read(), -1) << "no page";
    ring_.attach(&end_.page);
    EXPECT_EQ(ring_.read(), -1);
    end_.page.in_cons = end_.page.in_prod = 0xffffffff - 1;
    for (const char c : std::string{"a\xff"
                                    "bc"})
        end_.page.in[end_.page.in_prod++ % end_.page.in.size()] = c;
    EXPECT_EQ(ring_.read(), 'a');
    EXPECT_EQ(ring_.read(), 0xff) << "a byte, not an end";
    EXPECT_EQ(ring_.read(), 'b');
    EXPECT_EQ(ring_.read(), 'c');
    EXPECT_EQ(ring_.read(), -1);
    EXPECT_EQ(end_.page.in_cons, 2u);
}

TEST_F(XenConsoleRingTest, ImpossibleInputIsNoneAndOutputGoesOn) {
    ring_.attach(&end_.page);
    end_.page.in_prod = 1025;
    EXPECT_EQ(ring_.read(), -1);
    ring_.write("on\n");
    end_.take();
    EXPECT_EQ(end_.read, "on\n");
}

TEST(XenError, NumberAndName) {
    EXPECT_EQ(paravirt::xen_error_text(-1).view(), "-1 EPERM");
    EXPECT_EQ(paravirt::xen_error_text(-38).view(), "-38 ENOSYS");
    EXPECT_EQ(paravirt::xen_error_text(-4095).view(), "-4095 unknown");
    EXPECT_EQ(paravirt::xen_error_text(7).view(), "7");
    EXPECT_EQ(paravirt::xen_error_text(paravirt::HypercallResult{0, {6, true, 0}}).view(), "exception 6");
}

} // namespace
} // namespace spinkick::drivers
