// SPDX-License-Identifier: BSD-2-Clause
//
// The dump of a stall as it is taken from outside: what QEMU 7.2 answers, what it answers when it is ill, and what the
// dump then says.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tools/image_symbols.hpp"
#include "tools/post_mortem.hpp"
#include "tools/qmp.hpp"
#include "tools/summary.hpp"
#include "tools/text.hpp"

// Found by name in this program, which is an ELF file with symbols like any other.
extern "C" {
extern std::uint64_t rings_of_this_test[4];
std::uint64_t rings_of_this_test[4];
}

namespace spinkick::report {
[[gnu::noinline]] int stuck_function(int value);
[[gnu::noinline]] int stuck_function(int value) { return value * 3 + static_cast<int>(rings_of_this_test[0]); }

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

std::string registers_of(unsigned cpu, const char* rip, const char* flags, int halted) {
    return "\r\nCPU#" + std::to_string(cpu) +
           "\r\nRAX=ffffffff802177f0 RBX=ffffffff80350aa8 RCX=0000000000000000 RDX=ffffffff80350a30\r\n"
           "RSI=0000000000000000 RDI=0000000000000000 RBP=ffffffff803509d0 RSP=ffffffff803509d0\r\n"
           "R8 =0000000001000000 R9 =0000000000000200 R10=0000000000000001 R11=0000000000000001\r\nRIP=" +
           rip + " RFL=" + flags + " [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=" + std::to_string(halted) +
           "\r\nES =0010 0000000000000000 ffffffff 00cf9300 DPL=0 DS   [-WA]\r\n";
}

std::string lapic_of(const std::string& in_service, const std::string& requested, const char* tpr) {
    return "dumping local APIC state for CPU 0 \r\n\r\nLVT0\t 0x00010000 active-hi edge  masked\r\nESR\t 0x00000000\r\n"
           "ISR\t " +
           in_service + "\r\nIRR\t " + requested + "\r\n\r\nAPR 0x00 TPR " + tpr + " DFR 0x0f LDR 0x00 PPR 0x00\r\n";
}

/// A folder of its own for each test, with a short name: a socket's has 107 bytes at most.
class Folder {
  public:
    Folder() {
        std::string name = fs::temp_directory_path() / "spinkick-XXXXXX";
        path_ = ::mkdtemp(name.data());
    }
    ~Folder() { fs::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] fs::path operator/(const char* name) const { return path_ / name; }

  private:
    fs::path path_;
};

/// Plays QEMU for one client.
class FakeQemu {
  public:
    struct Script {
        std::string greeting = "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n";
        /// By command, or by the command line of the human monitor: the line that is sent, as it is. A command without
        /// one gets an empty "return"; the empty text: nothing at all; "EOF" at the end: the connection is closed.
        std::map<std::string, std::string> replies{};
    };

    FakeQemu(const fs::path& socket, Script script) : script_(std::move(script)) {
        listener_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strcpy(address.sun_path, socket.c_str());
        EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(listener_, 1), 0);
        thread_ = std::thread([this] { serve(); });
    }
    ~FakeQemu() {
        ::shutdown(listener_, SHUT_RDWR);
        thread_.join();
        ::close(listener_);
    }
    FakeQemu(const FakeQemu&) = delete;
    FakeQemu& operator=(const FakeQemu&) = delete;

  private:
    static void say(int client, const std::string& text) {
        static_cast<void>(::send(client, text.data(), text.size(), MSG_NOSIGNAL));
    }

    std::string reply_to(const Json& request) const {
        std::string key = request["execute"];
        if (key == "human-monitor-command") {
            const Json& arguments = request["arguments"];
            key = std::string(arguments["command-line"]) + " " + arguments["cpu-index"].dump();
        }
        if (const auto known = script_.replies.find(key); known != script_.replies.end())
            return known->second;
        if (key == "memsave") {
            // Eight bytes that stand for every stack.
            const std::uint64_t top = 0x1234;
            std::ofstream(std::string(request["arguments"]["filename"]), std::ios::binary)
                .write(reinterpret_cast<const char*>(&top), sizeof top);
        }
        return "{\"return\": {}}\r\n";
    }

    void serve() {
        const int client = ::accept(listener_, nullptr, nullptr);
        if (client < 0)
            return;
        say(client, script_.greeting);
        std::string unread;
        std::array<char, 4096> buffer{};
        for (;;) {
            const ssize_t got = ::recv(client, buffer.data(), buffer.size(), 0);
            if (got <= 0)
                break;
            unread.append(buffer.data(), static_cast<std::size_t>(got));
            std::size_t end = 0;
            bool closed = false;
            while (!closed && (end = unread.find('\n')) != std::string::npos) {
                std::string reply = reply_to(Json::parse(unread.substr(0, end)));
                unread.erase(0, end + 1);
                closed = reply.ends_with("EOF");
                say(client, closed ? reply.substr(0, reply.size() - 3) : reply);
            }
            if (closed)
                break;
        }
        ::close(client);
    }

    Script script_;
    int listener_ = -1;
    std::thread thread_;
};

std::string returned(const Json& value) { return Json{{"return", value}}.dump() + "\r\n"; }

/// Two vCPUs that spin with interrupts off, one of them with a timer interrupt that waits.
FakeQemu::Script spinning_guest() {
    FakeQemu::Script script;
    script.replies = {
        {"query-status", returned({{"status", "running"}, {"running", true}})},
        {"stop", "{\"timestamp\": {\"seconds\": 1}, \"event\": \"STOP\"}\r\n{\"return\": {}}\r\n"},
        {"query-cpus-fast", returned(Json::array({{{"cpu-index", 0}}, {{"cpu-index", 1}}}))},
        {"info registers -a 0", returned(registers_of(0, "ffffffff80205eb2", "00000046", 0) +
                                         registers_of(1, "ffffffff80205eb3", "00000046", 0))},
        {"info lapic 0", returned(lapic_of("(none)", "208 ", "0x00"))},
        {"info lapic 1", returned(lapic_of("(none)", "(none)", "0x00"))},
    };
    return script;
}

OutsideLook look_at(const FakeQemu::Script& script, std::chrono::milliseconds time = 3s) {
    const Folder folder;
    const FakeQemu qemu(folder / "qmp", script);
    return look_from_outside(folder / "qmp", std::chrono::steady_clock::now() + time);
}

std::string dump(const OutsideLook& look, CpuView view = CpuView::vcpus) {
    return dump_of(look, view, nullptr, "no verdict within 6 s", "selftest.hang");
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(PostMortem, RegistersAreReadAsQemuPrintsThem) {
    const auto cpus = parse_registers(registers_of(0, "ffffffff80205eb2", "00000246", 0) +
                                      registers_of(11, "000000000000fff0", "00000002", 1));
    ASSERT_EQ(cpus.size(), 2u);
    EXPECT_EQ(cpus[0].rip, 0xffffffff80205eb2u);
    EXPECT_EQ(cpus[0].rsp, 0xffffffff803509d0u);
    EXPECT_EQ(cpus[0].rflags, 0x246u);
    EXPECT_FALSE(cpus[0].halted);
    EXPECT_EQ(cpus[1].cpu, 11u);
    EXPECT_TRUE(cpus[1].halted);
}

TEST(PostMortem, RegistersInTheFirmwaresModesAreReadToo) {
    const auto cpus = parse_registers("\r\nCPU#0\r\nEAX=00000000 EBX=00000000\r\nESI=0 EDI=0 EBP=0 ESP=00006f00\r\n"
                                      "EIP=000f1234 EFL=00000002 [-------] CPL=0 II=0 A20=1 SMM=0 HLT=0\r\n");
    ASSERT_EQ(cpus.size(), 1u);
    EXPECT_EQ(cpus[0].rip, 0xf1234u);
    EXPECT_TRUE(cpus[0].known);
}

TEST(PostMortem, RegistersThatAreCutAreLeftOut) {
    const std::string whole =
        registers_of(0, "ffffffff80205eb2", "00000246", 1) + registers_of(1, "ffffffff80205eb2", "00000246", 1);
    for (std::size_t length = 0; length <= whole.size(); ++length) {
        const auto cpus = parse_registers(std::string_view(whole).substr(0, length));
        ASSERT_LE(cpus.size(), 2u);
        for (const auto& cpu : cpus)
            EXPECT_TRUE(cpu.known && cpu.rip != 0 && cpu.halted) << length;
    }
    EXPECT_TRUE(parse_registers("unknown command: 'info registers'\r\n").empty());
    EXPECT_TRUE(parse_registers("CPU#").empty());
    EXPECT_TRUE(parse_registers("CPU#x\r\nRIP=zz RFL= HLT=").empty());
}

TEST(PostMortem, TheApicsHighestVectorsAreRead) {
    const auto apic = parse_lapic(lapic_of("64 ", "208 209(level) 65 ", "0xe0"));
    ASSERT_TRUE(apic);
    EXPECT_EQ(apic->in_service, 0x40u);
    EXPECT_EQ(apic->requested, 0xd1u);
    EXPECT_EQ(apic->tpr, 0xe0u);
    EXPECT_FALSE(parse_lapic(""));
    EXPECT_FALSE(parse_lapic("Local APIC not available\r\n"));
    EXPECT_FALSE(parse_lapic("ISR\t (none)\r\nAPR 0x00 TPR 0x00"));
}

TEST(PostMortem, AGuestThatSpinsWithInterruptsOffIsADeadlock) {
    const auto look = look_at(spinning_guest());
    ASSERT_EQ(look.cpus.size(), 2u);
    EXPECT_TRUE(look.complaints.empty());
    EXPECT_EQ(look.status, "running");
    const auto text = dump(look);
    EXPECT_TRUE(contains(text, "# stall: no verdict within 6 s: seen from outside, by QMP, test selftest.hang\n"));
    EXPECT_TRUE(contains(text, "#   cpu 0: running, RIP 0xffffffff80205eb2 (outside the image, CPL 0), IF 0, ISR 0x0, "
                               "IRR 0xd0, TPR 0x0\n"));
    EXPECT_TRUE(contains(text, "#   no CPU takes interrupts"));
    EXPECT_TRUE(contains(text, "# stall verdict: deadlock, CPU 1"));
}

TEST(PostMortem, AHaltedCpuWithARequestHasLostAnInterrupt) {
    auto script = spinning_guest();
    script.replies["info registers -a 0"] = returned(registers_of(0, "ffffffff80205eb2", "00000246", 1) +
                                                     registers_of(1, "ffffffff80205eb3", "00000246", 0));
    EXPECT_TRUE(contains(dump(look_at(script)), "# stall verdict: lost IPI, CPU 0"));
    script.replies["info lapic 0"] = returned(lapic_of("(none)", "208 ", "0xe0")); // which TPR holds back
    EXPECT_TRUE(contains(dump(look_at(script)), "# stall verdict: lost wake-up, CPU 0"));
    script.replies["info lapic 0"] = returned("Local APIC not available");
    EXPECT_TRUE(contains(dump(look_at(script)), "IF 1, no APIC state\n"));
}

TEST(PostMortem, AGuestThatSomebodyHasStoppedIsPaused) {
    auto script = spinning_guest();
    script.replies["query-status"] = returned({{"status", "paused"}, {"running", false}});
    EXPECT_TRUE(contains(dump(look_at(script)), "# stall verdict: paused guest: "));
    script.replies["query-status"] = returned({{"status", "internal-error"}, {"running", false}});
    EXPECT_TRUE(contains(dump(look_at(script)), "# stall verdict: none: QEMU's own state is internal-error\n"));
}

TEST(PostMortem, CpusBelowAHypervisorGetNoVerdict) {
    const auto text = dump(look_at(spinning_guest()), CpuView::pcpus);
    EXPECT_TRUE(contains(text, "#   registers are those of the CPUs below the hypervisor"));
    EXPECT_TRUE(contains(text, "#   pcpu 1: running"));
    EXPECT_TRUE(contains(text, "# stall verdict: none: which vCPU waits"));
}

TEST(PostMortem, CpusOutsideTheImageWaitForNobody) {
    const ImageSymbols symbols("/proc/self/exe"); // whose code is elsewhere
    const auto text = dump_of(look_at(spinning_guest()), CpuView::vcpus, &symbols, "no verdict within 6 s", "");
    EXPECT_TRUE(contains(text, "# stall verdict: none: every CPU idles, or is not in the image's code\n"));
}

TEST(PostMortem, ACpuWithoutRegistersIsNamed) {
    auto script = spinning_guest();
    script.replies["info registers -a 0"] = returned(registers_of(0, "ffffffff80205eb2", "00000046", 0));
    const auto text = dump(look_at(script));
    EXPECT_TRUE(contains(text, "#   cpu 1: no registers\n"));
    EXPECT_TRUE(contains(text, "# stall verdict: no answer, CPU 1: QEMU does not tell its registers\n"));
}

TEST(PostMortem, TheDumpIsInTheFormsOfTheStream) {
    Stream stream;
    StreamParser parser;
    parser.feed("KTAP version 1\n1..1\n# begin 1 selftest.hang\n" + dump(look_at(spinning_guest())));
    parser.end();
    EXPECT_EQ(parser.stream().damaged_records, 0u);
    ASSERT_EQ(parser.stream().records.size(), 2u);
    Results results;
    for (const auto& record : parser.stream().records)
        results.records.push_back(record.json);
    results.runs.push_back({{}, "tcg", "emulated", Word::HANG, "no verdict in time", {}});
    const auto text = summary(results, Colour::off);
    EXPECT_TRUE(
        contains(text, "selftest.hang: CPU 0 at (outside the image, CPL 0) (0xffffffff80205eb2), running, IF 0\n"));
    EXPECT_TRUE(contains(text, "deadlock, CPU 1: "));
}

TEST(PostMortem, AnIllQemuIsALineAndNeverAHang) {
    const auto complaint_of = [](const FakeQemu::Script& script) {
        const auto start = std::chrono::steady_clock::now();
        const auto look = look_at(script, 300ms);
        EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
        EXPECT_EQ(look.complaints.size(), 1u);
        EXPECT_TRUE(contains(dump(look), "# stall verdict: "));
        return look.complaints.empty() ? std::string{} : look.complaints.front();
    };
    FakeQemu::Script script = spinning_guest();
    script.greeting = ""; // stopped: the kernel accepts for it
    EXPECT_EQ(complaint_of(script), "QEMU keeps the greeting back until the time is over: it is stopped, or it hangs");
    script.greeting = "SSH-2.0-OpenSSH_9.2\r\n";
    EXPECT_EQ(complaint_of(script), "QEMU's line for the greeting is no JSON object: SSH-2.0-OpenSSH_9.2\\x0d");
    script.greeting = "{\"hello\": 1}\r\n";
    EXPECT_TRUE(contains(complaint_of(script), "does not speak QMP"));

    script = spinning_guest();
    script.replies["query-cpus-fast"] = "";
    EXPECT_TRUE(contains(complaint_of(script), "keeps the answer to query-cpus-fast back"));
    script.replies["query-cpus-fast"] = "{\"return\": [{\"cpu-indexEOF";
    EXPECT_TRUE(
        contains(complaint_of(script), "QEMU has gone in the middle of the answer to query-cpus-fast: {\"return\""));
    script.replies["query-cpus-fast"] = "EOF";
    EXPECT_TRUE(contains(complaint_of(script), "QEMU has gone in the middle of the answer to query-cpus-fast"));
    script.replies["query-cpus-fast"] = "{\"error\": {\"class\": \"CommandNotFound\", \"desc\": \"not found\"}}\r\n";
    EXPECT_EQ(complaint_of(script), "QEMU refuses query-cpus-fast: not found");
    script.replies["query-cpus-fast"] = "{\"return\": [{\"cpu-index\": \r\n";
    EXPECT_TRUE(contains(complaint_of(script), "is no JSON object"));

    script = spinning_guest();
    script.replies["info registers -a 0"] = returned(Json::array({1}));
    EXPECT_TRUE(contains(complaint_of(script), "is no text: [1]"));
}

TEST(PostMortem, EventsWithoutEndDoNotHoldItUp) {
    auto script = spinning_guest();
    std::string flood;
    for (int i = 0; i < 20'000; ++i)
        flood += "{\"event\": \"RTC_CHANGE\"}\r\n";
    script.replies["query-status"] = flood; // and never an answer
    const auto look = look_at(script, 500ms);
    EXPECT_EQ(look.complaints.size(), 1u);
}

TEST(PostMortem, ASocketThatIsNotThereIsALine) {
    const Folder folder;
    const auto deadline = std::chrono::steady_clock::now() + 300ms;
    EXPECT_TRUE(
        contains(dump(look_from_outside(folder / "none", deadline)), "none: no QEMU answers there: No such file"));
    std::ofstream(folder / "file") << "no socket";
    EXPECT_TRUE(contains(dump(look_from_outside(folder / "file", deadline)), "file: no QEMU answers there: "));
    const fs::path longer = std::string(200, 'x');
    EXPECT_TRUE(contains(dump(look_from_outside(longer, deadline)), "has at most 107 bytes"));
}

TEST(PostMortem, TheLogGetsTheDumpBehindItsLastLine) {
    const Folder folder;
    std::ofstream(folder / "serial.log") << "KTAP version 1\n1..1\n# begin 1 selftest.hang\n# json {\"type\":\"te";
    const FakeQemu qemu(folder / "qmp", spinning_guest());
    post_mortem({folder / "qmp", folder / "serial.log", folder / "no image", CpuView::vcpus, 0});
    std::ostringstream text;
    text << std::ifstream(folder / "serial.log").rdbuf();
    EXPECT_TRUE(
        contains(text.str(), "\"te\n# stall: no verdict within 0 s: seen from outside, by QMP, test selftest.hang\n"));
    EXPECT_TRUE(contains(text.str(), "no image: No such file or directory\n"));
    EXPECT_TRUE(contains(text.str(), "# stall verdict: deadlock, CPU 1"));
}

TEST(PostMortem, ALogThatCannotBeWrittenIsAnError) {
    const Folder folder;
    EXPECT_THROW(post_mortem({folder / "qmp", folder / "no" / "log", folder / "image", CpuView::vcpus, 0}), InputError);
}

TEST(QmpMemory, IsReadByWayOfAFile) {
    const Folder folder;
    const FakeQemu qemu(folder / "qmp", {});
    QmpClient client(folder / "qmp", std::chrono::steady_clock::now() + 3s);
    const auto bytes = client.memory(0xffffffff80350000, 8);
    ASSERT_EQ(bytes.size(), 8u);
    EXPECT_EQ(bytes[0], std::byte{0x34});
    EXPECT_EQ(client.memory(0, 64).size(), 8u); // no more than QEMU has written
    EXPECT_FALSE(fs::exists(folder / "qmp.memory"));
}

TEST(QmpMemory, ThatIsNotMappedIsEmpty) {
    const Folder folder;
    FakeQemu::Script script;
    script.replies["memsave"] = "{\"error\": {\"class\": \"GenericError\", \"desc\": \"Invalid addr\"}}\r\n";
    const FakeQemu qemu(folder / "qmp", script);
    QmpClient client(folder / "qmp", std::chrono::steady_clock::now() + 3s);
    EXPECT_TRUE(client.memory(16, 8).empty());
}

TEST(ImageSymbols, FindFunctionsAndObjectsOfAnElfFile) {
    const ImageSymbols symbols("/proc/self/exe");
    const auto rings = symbols.object_named("rings_of_this_test");
    ASSERT_TRUE(rings);
    EXPECT_EQ(rings->size, sizeof rings_of_this_test);
    // This program may have been loaded elsewhere than it was linked for.
    const auto moved = reinterpret_cast<std::uint64_t>(&rings_of_this_test) - rings->address;
    const auto place = symbols.function_at(reinterpret_cast<std::uint64_t>(&stuck_function) - moved + 2);
    ASSERT_TRUE(place);
    EXPECT_EQ(place->function, "report::stuck_function");
    EXPECT_EQ(place->offset, 2u);
    EXPECT_FALSE(symbols.function_at(0));
    EXPECT_FALSE(symbols.function_at(~std::uint64_t{0}));
    EXPECT_FALSE(symbols.object_named("no_such_object"));
}

TEST(ImageSymbols, OfAnythingElseAreAnError) {
    const Folder folder;
    std::ofstream(folder / "text") << "no ELF";
    std::ofstream(folder / "empty");
    std::ifstream self("/proc/self/exe", std::ios::binary);
    std::string head(4096, '\0');
    self.read(head.data(), static_cast<std::streamsize>(head.size()));
    std::ofstream(folder / "cut", std::ios::binary) << head;
    for (const char* name : {"text", "empty", "cut", "absent"})
        EXPECT_THROW(ImageSymbols{folder / name}, InputError) << name;
}

TEST(ImageSymbols, NamesAreThoseOfTheImage) {
    EXPECT_EQ(short_name("_ZN8spinkick3x8612_GLOBAL__N_16on_nmiERNS0_9TrapFrameE"), "x86::on_nmi");
    EXPECT_EQ(short_name("sti_hlt_at_hlt"), "sti_hlt_at_hlt");
}

} // namespace
} // namespace spinkick::report
