// SPDX-License-Identifier: BSD-2-Clause
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/host/sample_log.hpp"
#include "tools/follow.hpp"
#include "tools/text.hpp"

namespace spinkick::report {
namespace {

using std::chrono::milliseconds;

struct Pipe {
    std::array<int, 2> ends{};
    Pipe() {
        if (::pipe(ends.data()) != 0)
            ADD_FAILURE() << "no pipe";
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe() {
        close_end(0);
        close_end(1);
    }
    void close_end(std::size_t end) {
        if (ends[end] >= 0)
            ::close(ends[end]);
        ends[end] = -1;
    }
};

class Follow : public testing::Test {
  protected:
    Follow() { std::filesystem::remove(log_); }
    ~Follow() override { std::filesystem::remove(log_); }

    [[nodiscard]] std::string logged() const {
        std::ifstream file(log_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }

    const std::filesystem::path log_ =
        std::filesystem::path{testing::TempDir()} / fmt::format("spinkick_follow_{}.log", ::getpid());
};

TEST_F(Follow, KeepsEveryByteAndPrintsALineForEachTest) {
    using namespace std::string_literals;
    const std::string bytes = "\0\xff\r noise"s + sample::failing() + "\x1b[0m no newline at the end"s;
    Pipe guest;
    Pipe progress;
    std::thread writer([&] {
        for (std::size_t at = 0; at < bytes.size(); at += 100)
            EXPECT_GT(::write(guest.ends[1], bytes.data() + at, std::min<std::size_t>(100, bytes.size() - at)), 0);
        guest.close_end(1);
    });
    follow(guest.ends[0], progress.ends[1], {log_, 90, false});
    writer.join();
    progress.close_end(1);
    std::string shown(4096, '\0');
    shown.resize(static_cast<std::size_t>(std::max<ssize_t>(0, ::read(progress.ends[0], shown.data(), shown.size()))));
    EXPECT_EQ(logged(), bytes);
    EXPECT_EQ(shown, "[1/5] ok boot.tables\n"
                     "[2/5] ok smp.all_up\n"
                     "[3/5] FAIL lock.mutual_exclusion/tas/native: two CPUs inside\n"
                     "[4/5] skip lock.mutual_exclusion/pv-queued/kvm: no PV_UNHALT\n"
                     "[5/5] ok bench.contention\n");
}

TEST_F(Follow, ATerminalThatTakesNothingDoesNotStopTheGuest) {
    // The progress pipe is full from the start and nobody reads it: what the guest writes must be taken all the same.
    Pipe guest;
    Pipe progress;
    ASSERT_EQ(::fcntl(progress.ends[1], F_SETFL, O_NONBLOCK), 0);
    const std::string filling(65536, 'x');
    while (::write(progress.ends[1], filling.data(), filling.size()) > 0) {
    }
    ASSERT_EQ(::fcntl(progress.ends[1], F_SETFL, 0), 0);

    std::thread follower([&] { follow(guest.ends[0], progress.ends[1], {log_, {}, false}); });
    std::string bytes = sample::passing();
    while (bytes.size() < std::size_t{4} << 20)
        bytes += "(XEN) more than any pipe holds\n";
    std::size_t written = 0;
    while (written < bytes.size()) {
        const ssize_t count = ::write(guest.ends[1], bytes.data() + written, bytes.size() - written);
        ASSERT_GT(count, 0);
        written += static_cast<std::size_t>(count);
    }
    guest.close_end(1);
    progress.close_end(0); // now it can go
    follower.join();
    EXPECT_EQ(logged(), bytes);
}

TEST_F(Follow, AppendsSoThatARestartLosesNothing) {
    std::ofstream(log_) << "first\n";
    Pipe guest;
    ASSERT_EQ(::write(guest.ends[1], "second\n", 7), 7);
    guest.close_end(1);
    Pipe progress;
    follow(guest.ends[0], progress.ends[1], {log_, {}, false});
    EXPECT_EQ(logged(), "first\nsecond\n");
}

TEST_F(Follow, AFullDiskIsAnErrorAfterTheGuestHasBeenRead) {
    Pipe guest;
    const std::string bytes = sample::passing();
    ASSERT_GT(::write(guest.ends[1], bytes.data(), bytes.size()), 0);
    guest.close_end(1);
    Pipe progress;
    EXPECT_THROW(follow(guest.ends[0], progress.ends[1], {"/dev/full", {}, false}), InputError);
    EXPECT_EQ(::read(guest.ends[0], std::array<char, 1>{}.data(), 1), 0);
    EXPECT_THROW(follow(guest.ends[0], progress.ends[1], {"/nonexistent/log", {}, false}), InputError);
}

TEST(Progress, ShowsCountTestTimeAndLimit) {
    const std::string log = sample::passing();
    const Stream stream = sample::parse(log.substr(0, log.find("ok 3")));
    EXPECT_EQ(progress_line(stream, milliseconds{8'000}, 90),
              "[2/5] lock.mutual_exclusion/tas/native  8 s, about 12 s left (limit 1 min 30 s)");
    EXPECT_EQ(progress_line(Stream{}, milliseconds{1'000}, {}), "[  0] booting  1 s");
    EXPECT_EQ(progress_line(sample::parse(log), milliseconds{61'000}, {}), "[5/5] verdict PASS  1 min 01 s");
}

} // namespace
} // namespace spinkick::report
