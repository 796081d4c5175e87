// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/json.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/host/console_capture.hpp"

namespace spinkick::test {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPrefix = "# json ";

Json parsed(std::string_view line) {
    EXPECT_TRUE(line.starts_with(kPrefix)) << line;
    return Json::parse(line.substr(kPrefix.size()));
}

void fill_context(JsonLine& line) {
    line.number("schema", 1).text("boot", "pvh").flag("tsc_invariant", true);
    line.begin_list("hypervisors");
    line.begin_object().text("name", "KVM").number("base", 0x40000000u).number("max", 0x40000001u).end();
    line.begin_object().text("name", "Xen").number("base", 0x40000100u).number("max", 0x40000105u).end();
    line.end();
    line.begin_list("ids").tuple(0, 0, -1).tuple(1, 5, -1).end();
    line.begin_object("backends").text("ipi", "ok").text("xen", "no leaf \"XenVMMXenVMM\"").end();
    line.begin_list("none").end();
}

const Json kContext = Json::parse(R"({"type":"context","schema":1,"boot":"pvh","tsc_invariant":true,
    "hypervisors":[{"name":"KVM","base":1073741824,"max":1073741825},{"name":"Xen","base":1073742080,"max":1073742085}],
    "ids":[[0,0,-1],[1,5,-1]],"backends":{"ipi":"ok","xen":"no leaf \"XenVMMXenVMM\""},"none":[]})");

TEST(Json, WritesWhatAParserReadsBack) {
    std::array<char, 1024> storage{};
    JsonLine line(storage, "context");
    fill_context(line);
    EXPECT_EQ(parsed(line.finish()), kContext);
}

TEST(Json, NumbersKeepTheirValueAtTheEdges) {
    std::array<char, 512> storage{};
    JsonLine line(storage, "edges");
    line.number("u", UINT64_MAX).number("i", INT64_MIN).number("z", 0).number("b", std::int8_t{-128}).number("m", -1L);
    const std::array<std::uint32_t, 3> list{0, 1, UINT32_MAX};
    line.list("list", std::span<const std::uint32_t>(list));
    EXPECT_EQ(line.finish(), "# json {\"type\":\"edges\",\"u\":18446744073709551615,\"i\":-9223372036854775808,\"z\":0,"
                             "\"b\":-128,\"m\":-1,\"list\":[0,1,4294967295]}");
}

TEST(Json, EscapesEveryByte) {
    std::string all;
    for (int c = 0; c < 256; ++c)
        all.push_back(static_cast<char>(c));
    std::array<char, 4096> storage{};
    JsonLine line(storage, "escape");
    line.text("all", all);
    const std::string_view text = line.finish();
    for (const char c : text)
        ASSERT_TRUE(c >= 0x20 && c < 0x7f);
    const auto value = parsed(text)["all"].get<std::string>();
    std::string expected; // UTF-8 of U+0000..U+00FF
    for (unsigned c = 0; c < 256; ++c) {
        if (c < 0x80) {
            expected.push_back(static_cast<char>(c));
        } else {
            expected.push_back(static_cast<char>(0xc0 | (c >> 6)));
            expected.push_back(static_cast<char>(0x80 | (c & 0x3f)));
        }
    }
    EXPECT_EQ(value, expected);
}

TEST(Json, ARecordThatDoesNotFitIsLostByNameAtEverySize) {
    std::array<char, 1024> large{};
    JsonLine whole(large, "context");
    fill_context(whole);
    const std::size_t needed = whole.finish().size();
    ASSERT_GT(needed, 100u);
    for (std::size_t size = 0; size < needed; ++size) {
        std::vector<char> storage(size + 1, '#');
        JsonLine line({storage.data(), size}, "context");
        fill_context(line);
        EXPECT_FALSE(line.emit());
        EXPECT_EQ(line.needed(), needed);
        EXPECT_EQ(storage[size], '#');
        EXPECT_EQ(take_console_lines(),
                  std::vector<std::string>{"# record lost: type context: needs " + std::to_string(needed) +
                                           " bytes, its buffer has " + std::to_string(size)});
    }
    std::vector<char> exact(needed);
    JsonLine line(exact, "context");
    fill_context(line);
    EXPECT_TRUE(line.emit());
    const auto lines = take_console_lines();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_EQ(parsed(lines[0]), kContext);
}

TEST(Json, AMisuseIsLostByName) {
    std::array<char, 256> storage{};
    const auto lost = [&](auto misuse) {
        JsonLine line(storage, "misuse");
        misuse(line);
        EXPECT_FALSE(line.emit());
        EXPECT_EQ(take_console_lines(),
                  std::vector<std::string>{"# record lost: type misuse: its brackets or keys do not match"});
    };
    lost([](JsonLine& line) { line.begin_list("open"); });
    lost([](JsonLine& line) { line.end().end(); });
    lost([](JsonLine& line) { line.number(7); });
    lost([](JsonLine& line) { line.begin_list("list").number("key", 7).end(); });
    lost([](JsonLine& line) {
        line.begin_list("deep");
        for (int i = 0; i < 20; ++i)
            line.begin_list();
        for (int i = 0; i < 21; ++i)
            line.end();
    });
}

} // namespace
} // namespace spinkick::test
