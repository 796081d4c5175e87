// SPDX-License-Identifier: BSD-2-Clause
#include "tools/results.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "tools/junit.hpp"
#include "tools/tap.hpp"
#include "tools/text.hpp"
#include "tools/trace.hpp"

namespace spinkick::report {
namespace {

void put_id(Json& json, const RunId& id) {
    if (id.run)
        json["run"] = *id.run;
    if (id.vm)
        json["vm"] = *id.vm;
}

Json json_of(const RunVerdict& run) {
    Json json = Json::object();
    put_id(json, run.id);
    json["platform"] = run.platform;
    json["timing"] = run.timing;
    json["word"] = name_of(run.word);
    json["exit_code"] = raw(exit_code_of(run.word));
    json["reason"] = run.reason;
    json["notes"] = run.notes;
    return json;
}

Json json_of(const TestResult& test) {
    Json json = Json::object();
    put_id(json, test.id);
    json["name"] = test.name;
    json["status"] = name_of(test.status);
    json["reason"] = test.reason;
    json["ns"] = test.ns ? Json(*test.ns) : Json(nullptr);
    return json;
}

RunVerdict run_verdict_of(const Json& json) {
    const auto word = word_named(json.at("word").get<std::string>());
    if (!word)
        throw InputError("unknown word " + printable(json.at("word").get<std::string>()));
    return {run_id_of(json), json.at("platform").get<std::string>(), json.at("timing").get<std::string>(),
            *word,           json.at("reason").get<std::string>(),   json.at("notes").get<std::vector<std::string>>()};
}

TestResult test_result_of(const Json& json) {
    const auto status = status_named(json.at("status").get<std::string>());
    if (!status)
        throw InputError("unknown status " + printable(json.at("status").get<std::string>()));
    TestResult test{run_id_of(json), json.at("name").get<std::string>(), *status, json.at("reason").get<std::string>(),
                    std::nullopt};
    if (const auto ns = json.find("ns"); ns != json.end() && ns->is_number_unsigned())
        test.ns = ns->get<std::uint64_t>();
    return test;
}

std::string read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw InputError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
    std::string text(std::istreambuf_iterator<char>(file), {});
    if (file.bad())
        throw InputError(fmt::format("{}: cannot be read", path.string()));
    return text;
}

} // namespace

std::string text_of(const RunId& id) {
    std::string text;
    if (id.run)
        text = fmt::format("run {}", *id.run);
    if (id.vm)
        text += fmt::format("{}vm {}", text.empty() ? "" : ", ", *id.vm);
    return text;
}

void Tally::add(Status status) noexcept {
    switch (status) {
    case Status::pass:
        ++pass;
        break;
    case Status::fail:
        ++fail;
        break;
    case Status::error:
        ++error;
        break;
    case Status::skip:
        ++skip;
        break;
    case Status::not_run:
        ++not_run;
        break;
    }
}

Word Results::word() const noexcept {
    Word word = runs.empty() ? Word::ERROR : runs.front().word;
    for (const RunVerdict& run : runs)
        word = worst(word, run.word);
    return word;
}

Tally Results::tally() const noexcept {
    Tally tally;
    for (const TestResult& test : tests)
        tally.add(test.status);
    return tally;
}

std::string Results::reason() const {
    for (const RunVerdict& run : runs)
        if (run.word == word() && !run.reason.empty())
            return runs.size() == 1 || run.id == RunId{} ? run.reason
                                                         : fmt::format("{}: {}", text_of(run.id), run.reason);
    return "";
}

RunId run_id_of(const Json& record) {
    const auto number = [&record](const char* key) -> std::optional<std::uint32_t> {
        const auto value = record.find(key);
        if (value == record.end() || !value->is_number_unsigned())
            return std::nullopt;
        return value->get<std::uint32_t>();
    };
    return {number("run"), number("vm")};
}

std::string to_json(const Results& results) {
    const Tally tally = results.tally();
    Json verdict = {{"word", name_of(results.word())},
                    {"exit_code", raw(exit_code_of(results.word()))},
                    {"plan", tally.total()},
                    {"pass", tally.pass},
                    {"fail", tally.fail},
                    {"error", tally.error},
                    {"skip", tally.skip},
                    {"not_run", tally.not_run},
                    {"reason", results.reason()}};
    Json json = {{"schema", kSchema}, {"records", results.records}, {"tests", Json::array()}};
    for (const TestResult& test : results.tests)
        json["tests"].push_back(json_of(test));
    json["verdict"] = std::move(verdict);
    json["runs"] = Json::array();
    for (const RunVerdict& run : results.runs)
        json["runs"].push_back(json_of(run));
    return json.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

Results from_json(std::string_view text, const std::string& source) {
    try {
        const Json json = Json::parse(text);
        if (!json.is_object() || !json.contains("schema"))
            throw InputError(fmt::format("{}: no \"schema\" in it: not a results.json", source));
        if (const auto& schema = json.at("schema"); schema != kSchema)
            throw InputError(fmt::format("{}: schema {}, but this spinkick-report reads schema {}: use the one that "
                                         "belongs to the results",
                                         source, printable(schema.dump()), kSchema));
        Results results;
        for (const Json& record : json.at("records")) {
            if (!record.is_object() || !record.at("type").is_string())
                throw InputError("a record is no object with a type");
            results.records.push_back(record);
        }
        for (const Json& test : json.at("tests"))
            results.tests.push_back(test_result_of(test));
        for (const Json& run : json.at("runs"))
            results.runs.push_back(run_verdict_of(run));
        if (results.runs.empty())
            throw InputError("it holds no run");
        return results;
    } catch (const nlohmann::json::exception& error) {
        throw InputError(fmt::format("{}: cut or damaged: {}", source, printable(error.what())));
    } catch (const InputError& error) {
        if (std::string_view{error.what()}.starts_with(source))
            throw;
        throw InputError(fmt::format("{}: cut or damaged: {}", source, error.what()));
    }
}

Results load_results(const std::filesystem::path& path) {
    const auto file = std::filesystem::is_directory(path) ? path / "results.json" : path;
    return from_json(read_file(file), file.string());
}

Results merge(std::vector<Results> parts) {
    if (parts.size() == 1)
        return std::move(parts.front());
    Results whole;
    using Run = std::optional<std::uint32_t>;
    std::set<std::uint32_t> used;
    for (const Results& part : parts)
        for (const RunVerdict& run : part.runs)
            if (run.id.run)
                used.insert(*run.id.run);

    std::set<RunId> taken;
    Run unnumbered; // what a boot without a number is called, until a second one comes
    std::uint32_t next = 1;
    for (Results& part : parts) {
        // A boot that has no number of its own, or whose guests have been here before, gets the next number that nobody
        // has. Guests of one boot stay together, whether they come in one part or in several.
        std::map<Run, Run> renamed;
        for (const RunVerdict& run : part.runs) {
            if (renamed.contains(run.id.run))
                continue;
            Run number = run.id.run ? run.id.run : unnumbered;
            const bool is_known = std::any_of(part.runs.begin(), part.runs.end(), [&](const RunVerdict& guest) {
                return guest.id.run == run.id.run && taken.contains({number, guest.id.vm});
            });
            if (!number || is_known) {
                while (!used.insert(next).second)
                    ++next;
                number = next;
            }
            if (!run.id.run)
                unnumbered = number;
            renamed[run.id.run] = number;
        }
        for (RunVerdict& run : part.runs) {
            run.id.run = renamed[run.id.run];
            taken.insert(run.id);
            whole.runs.push_back(std::move(run));
        }
        const auto new_id = [&renamed](RunId id) {
            if (const auto found = renamed.find(id.run); found != renamed.end())
                id.run = found->second;
            return id;
        };
        for (TestResult& test : part.tests) {
            test.id = new_id(test.id);
            whole.tests.push_back(std::move(test));
        }
        for (Json& record : part.records) {
            put_id(record, new_id(run_id_of(record)));
            whole.records.push_back(std::move(record));
        }
    }
    return whole;
}

std::vector<std::string> unique_names(const Results& results) {
    std::set<std::string> used;
    std::vector<std::string> names;
    names.reserve(results.tests.size());
    for (const TestResult& test : results.tests) {
        std::string name = printable(test.name);
        if (results.runs.size() > 1) {
            name += test.id.run ? fmt::format("@run{}", *test.id.run) : "";
            name += test.id.vm ? fmt::format("@vm{}", *test.id.vm) : "";
        }
        const std::string base = name;
        for (int copy = 2; !used.insert(name).second; ++copy)
            name = fmt::format("{}@{}", base, copy);
        names.push_back(std::move(name));
    }
    return names;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
    const std::filesystem::path unfinished = path.string() + ".unfinished";
    std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    if (!file)
        throw InputError(fmt::format("{}: cannot be written: {}", unfinished.string(), std::strerror(errno)));
    std::filesystem::rename(unfinished, path);
}

void write_files(const Results& results, const std::filesystem::path& directory) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error)
        throw InputError(fmt::format("{}: cannot be made: {}", directory.string(), error.message()));
    write_file(directory / "results.tap", to_tap(results));
    write_file(directory / "junit.xml", to_junit(results));
    write_file(directory / "results.json", to_json(results));
    // Only where something was traced; an older run's would be taken for this one's.
    if (const auto trace = trace_of(results); !trace.is_null())
        write_file(directory / "trace.json", trace.dump() + "\n");
    else
        std::filesystem::remove(directory / "trace.json", error);
}

} // namespace spinkick::report
