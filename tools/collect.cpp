// SPDX-License-Identifier: BSD-2-Clause
#include "tools/collect.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "tools/text.hpp"

namespace spinkick::report {

Stream read_logs(const std::vector<std::filesystem::path>& logs) {
    StreamParser parser;
    for (const auto& path : logs) {
        std::ifstream log(path, std::ios::binary);
        if (!log)
            throw InputError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
        std::array<char, 65536> buffer{};
        while (log.read(buffer.data(), buffer.size()), log.gcount() > 0)
            parser.feed({buffer.data(), static_cast<std::size_t>(log.gcount())});
        // A directory opens and does not read.
        if (log.bad())
            throw InputError(fmt::format("{}: cannot be read", path.string()));
        parser.end();
    }
    return parser.stream();
}

namespace {

/// The records of the stream, and one with the host's counters.
std::vector<StreamRecord> with_host_record(const Stream& stream, const RunFacts& facts) {
    std::vector<StreamRecord> records = stream.records;
    if (facts.host_counters) {
        StreamRecord host;
        host.json = {{"type", "host_counters"}};
        for (const auto& [name, value] : parse_host_counters(*facts.host_counters))
            host.json[name] = value;
        records.push_back(std::move(host));
    }
    return records;
}

/// What only the host can tell is a test as well; the image's verdict does not know of it.
void add_host_test(Results& results, Judgement& judgement, TestResult test) {
    const auto word = test.status == Status::fail    ? Word::FAIL
                      : test.status == Status::error ? Word::ERROR
                                                     : Word::PASS;
    if (word != Word::PASS && (judgement.word == Word::PASS || judgement.word == Word::SKIP)) {
        judgement.word = word;
        judgement.reason = fmt::format("{}: {}", test.name, test.reason);
    }
    results.tests.push_back(std::move(test));
}

} // namespace

Results results_of(const Stream& stream, const RunFacts& facts) {
    Judgement judgement = judge(stream, facts.ending);
    Results results;
    for (const StreamTest& test : believed_tests(stream, judgement))
        results.tests.push_back({facts.id, test.name, *test.status, test.reason, test.ns});
    for (const StreamRecord& record : with_host_record(stream, facts)) {
        Json json = record.json;
        // A record names the test that it was written in, so that it can stand alone; a stall already does.
        if (const auto test = stream.tests.find(record.test); test != stream.tests.end() && !json.contains("test"))
            json["test"] = test->second.name;
        json["timing"] = facts.timing;
        json["platform"] = facts.platform;
        if (const auto type = json.find("type"); type != json.end() && *type == "context")
            for (const auto& fact : facts.host_facts)
                json["host"][fact.substr(0, fact.find('='))] = fact.substr(fact.find('=') + 1);
        add_host_counters(json, facts.host_syncs);
        if (facts.image)
            json["image"] = *facts.image;
        if (facts.image_sha256)
            json["image_sha256"] = *facts.image_sha256;
        if (facts.pcpus)
            json["pcpus"] = *facts.pcpus;
        if (facts.id.run)
            json["run"] = *facts.id.run;
        if (facts.id.vm)
            json["vm"] = *facts.id.vm;
        results.records.push_back(std::move(json));
    }
    if (facts.host_counters) {
        const auto counters = parse_host_counters(*facts.host_counters);
        add_host_test(results, judgement, yields_for_each_kick(results.records, counters, facts.id));
        add_host_test(results, judgement, same_counts_between_syncs(results.records, facts.id));
    }
    results.runs.push_back({facts.id, facts.platform, facts.timing, judgement.word, std::move(judgement.reason),
                            std::move(judgement.notes)});
    return results;
}

} // namespace spinkick::report
