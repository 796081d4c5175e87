// SPDX-License-Identifier: BSD-2-Clause
#include "tools/page_data.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tools/distribution.hpp"
#include "tools/figures.hpp"
#include "tools/host_noise.hpp"
#include "tools/record.hpp"
#include "tools/statistics.hpp"
#include "tools/text.hpp"

namespace spinkick::report {
namespace {

Json sample_json(const std::vector<double>& values) {
    if (values.empty())
        return nullptr;
    const auto deviation = deviation_of(values);
    return {{"mean", mean_of(values)}, {"stdev", deviation ? Json(*deviation) : Json(nullptr)}, {"values", values}};
}

Json optional_json(std::optional<std::uint64_t> value) { return value ? Json(*value) : Json(nullptr); }

/// A field of a context record as a person reads it: feature words in hexadecimal, objects as "key: value; ...".
std::string readable(const std::string& key, const Json& value) {
    if (value.is_string())
        return printable(value.get<std::string>());
    if (value.is_number_unsigned() && (key == "kvm_features" || key == "kvm_hints"))
        return fmt::format("{:#x}", value.get<std::uint64_t>());
    std::string text;
    const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
    if (value.is_array() &&
        std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_object(); })) {
        for (const Json& item : value) {
            const auto base = number_in(item, "base");
            const std::string name = printable(text_in(item, "name"));
            add(base && !name.empty() ? fmt::format("{} at {:#x}", name, *base) : printable(item.dump()));
        }
        return text.empty() ? "none" : text;
    }
    if (value.is_object()) {
        for (const auto& [name, state] : value.items())
            add(fmt::format("{}: {}", printable(name), readable(name, state)));
        return text;
    }
    return printable(value.dump());
}

// --- configurations --------------------------------------------------------------------------------------------------

/// Boots whose context records agree in everything but what changes from boot to boot, and in the number of CPUs, which
/// is an axis of the pictures. Other images or hosts never share a bar.
class Configurations {
  public:
    explicit Configurations(const Results& results) {
        for (const Json& record : results.records) {
            if (!is_type(record, "context"))
                continue;
            const RunId id = run_id_of(record);
            Json identity = record;
            for (const char* key :
                 {"run", "vm", "seed", "tsc_khz", "command_line", "ids", "cpus", "cpus_found", "pcpus"})
                identity.erase(key);
            auto known = std::find_if(all_.begin(), all_.end(),
                                      [&identity](const Configuration& c) { return c.identity == identity; });
            if (known == all_.end())
                known = all_.insert(all_.end(), {std::move(identity), {}, 0});
            ++known->boots;
            for (const auto& [key, value] : record.items())
                known->fields[key].insert(readable(key, value));
            of_run_[id] = static_cast<std::size_t>(known - all_.begin());
        }
    }

    /// Nothing for a boot without a context record.
    [[nodiscard]] std::optional<std::size_t> of(const RunId& id) const {
        const auto found = of_run_.find(id);
        return found == of_run_.end() ? std::nullopt : std::optional{found->second};
    }
    [[nodiscard]] std::size_t count() const noexcept { return all_.size(); }
    [[nodiscard]] static std::string name(std::optional<std::size_t> index) {
        return index ? fmt::format("{}", *index + 1) : "unknown";
    }

    /// One column for each, a row for each field; a field's values in several boots stand beside each other.
    [[nodiscard]] Json json() const {
        static constexpr std::array<std::pair<const char*, const char*>, 25> kLabels{{
            {"platform", "platform"},
            {"timing", "time"},
            {"hypervisors", "hypervisors"},
            {"xen_version", "Xen"},
            {"kvm_features", "KVM features"},
            {"kvm_hints", "KVM hints"},
            {"cpus", "vCPUs"},
            {"pcpus", "host CPUs"},
            {"cpu_model", "CPU"},
            {"boot", "booted by"},
            {"version", "spinkick"},
            {"preset", "preset"},
            {"compiler", "compiler"},
            {"image_sha256", "image SHA-256"},
            {"default_lock", "default lock"},
            {"default_lock_backend", "its back end"},
            {"default_lock_reason", "because"},
            {"backends", "back ends"},
            {"kick", "kicks by"},
            {"clock", "clock"},
            {"tsc_khz", "TSC kHz"},
            {"tsc_source", "TSC frequency from"},
            {"spin_threshold", "spin threshold"},
            {"seed", "seed"},
            {"command_line", "command line"},
        }};
        static const std::set<std::string> kLeftOut{"type", "schema", "run",   "vm",
                                                    "ids",  "test",   "image", "cpus_found"};
        std::vector<std::pair<std::string, std::string>> rows; // key, label
        for (const auto& [key, label] : kLabels)
            rows.emplace_back(key, label);
        for (const Configuration& configuration : all_)
            for (const auto& [key, values] : configuration.fields)
                if (!kLeftOut.contains(key) && std::none_of(rows.begin(), rows.end(), [&name = key](const auto& row) {
                        return row.first == name;
                    }))
                    rows.emplace_back(key, key);
        Json json = {{"boots", Json::array()}, {"rows", Json::array()}};
        for (const Configuration& configuration : all_)
            json["boots"].push_back(configuration.boots);
        for (const auto& [key, label] : rows) {
            Json cells = Json::array();
            bool any = false;
            for (const Configuration& configuration : all_) {
                std::string cell;
                if (const auto field = configuration.fields.find(key); field != configuration.fields.end())
                    for (const std::string& value : in_order(field->second))
                        cell += (cell.empty() ? "" : ", ") + value;
                any = any || !cell.empty();
                cells.push_back(std::move(cell));
            }
            if (any)
                json["rows"].push_back({{"label", label}, {"cells", std::move(cells)}});
        }
        return json;
    }

  private:
    struct Configuration {
        Json identity;
        std::map<std::string, std::set<std::string>> fields;
        unsigned boots = 0;
    };

    /// Numbers by size: 2, 4, 16.
    [[nodiscard]] static std::vector<std::string> in_order(const std::set<std::string>& values) {
        std::vector<std::string> ordered(values.begin(), values.end());
        std::stable_sort(ordered.begin(), ordered.end(), [](const std::string& a, const std::string& b) {
            const auto x = parse_number<std::uint64_t>(a);
            const auto y = parse_number<std::uint64_t>(b);
            return x && y && *x < *y;
        });
        return ordered;
    }

    std::vector<Configuration> all_;
    std::map<RunId, std::size_t> of_run_;
};

// --- figures ---------------------------------------------------------------------------------------------------------

struct Lock {
    std::string lock, backend;
    std::vector<double> per_second, jain, halts, kicks, steal, kick_to_run;
    std::map<std::string, std::vector<double>> host; ///< what KVM counted, as `halts`
    std::optional<std::uint64_t> share_min, share_max;
    Distribution wait, handoff;
};

struct Group {
    Place place;
    std::optional<std::size_t> configuration;
    std::set<std::optional<std::uint32_t>> boots;
    std::vector<Lock> locks;

    Lock& lock(const Json& record) {
        const std::string name = text_in(record, "lock");
        const std::string backend = text_in(record, "backend");
        const auto found = std::find_if(locks.begin(), locks.end(),
                                        [&](const Lock& lock) { return lock.lock == name && lock.backend == backend; });
        if (found != locks.end())
            return *found;
        Lock& added = locks.emplace_back();
        added.lock = name;
        added.backend = backend;
        return added;
    }
};

constexpr std::array kHostKeys{"host_halt_exits", "host_halt_wakeup", "host_directed_yield_attempted",
                               "host_directed_yield_successful"};

void add_bench(Lock& lock, const Json& record, std::optional<std::uint64_t> tsc_khz) {
    constexpr double kPer = 1000; // halts and kicks for so many acquisitions
    if (const auto rate = number_in(record, "acquisitions_per_s"))
        lock.per_second.push_back(static_cast<double>(*rate));
    if (const auto jain = number_in(record, "jain_permille"))
        lock.jain.push_back(static_cast<double>(*jain) / 1000);
    if (const auto least = number_in(record, "share_min_permille"))
        lock.share_min = std::min(lock.share_min.value_or(*least), *least);
    if (const auto most = number_in(record, "share_max_permille"))
        lock.share_max = std::max(lock.share_max.value_or(0), *most);
    if (const auto acquisitions = number_in(record, "acquisitions"); acquisitions && *acquisitions != 0) {
        if (const auto halts = number_in(record, "halts"))
            lock.halts.push_back(kPer * static_cast<double>(*halts) / static_cast<double>(*acquisitions));
        if (const auto kicks = number_in(record, "kicks"))
            lock.kicks.push_back(kPer * static_cast<double>(*kicks) / static_cast<double>(*acquisitions));
        for (const char* key : kHostKeys)
            if (const auto counted = number_in(record, key))
                lock.host[key].push_back(kPer * static_cast<double>(*counted) / static_cast<double>(*acquisitions));
    }
    if (const auto ns = kick_to_run_ns(record, tsc_khz))
        lock.kick_to_run.push_back(*ns);
    const auto steal = number_in(record, "steal_ns");
    const auto duration = number_in(record, "duration_ns");
    const auto cpus = number_in(record, "cpus");
    if (steal && duration && cpus && *duration * *cpus != 0)
        lock.steal.push_back(100 * static_cast<double>(*steal) / static_cast<double>(*duration * *cpus));
}

Json distribution_json(const Distribution& distribution) {
    Json points = Json::array();
    for (const auto& point : distribution.cumulative())
        points.push_back({point.ns, point.part});
    if (points.empty())
        return nullptr;
    return {{"points", std::move(points)},
            {"buckets", distribution.has_buckets()},
            {"bounded", distribution.is_bounded()},
            {"count", distribution.count()},
            {"p50", optional_json(distribution.percentile(50))},
            {"p99", optional_json(distribution.percentile(99))},
            {"max", optional_json(distribution.max_ns())},
            {"skew", optional_json(distribution.skew_ns())}};
}

Json lock_json(const Lock& lock) {
    Json share = nullptr;
    if (lock.share_min && lock.share_max)
        share = {static_cast<double>(*lock.share_min) / 10, static_cast<double>(*lock.share_max) / 10};
    Json json{{"name", printable(lock_name(lock.lock, lock.backend))},
              {"lock", printable(lock.lock)},
              {"backend", printable(lock.backend)},
              {"per_second", sample_json(lock.per_second)},
              {"jain", sample_json(lock.jain)},
              {"share", std::move(share)},
              {"halts", sample_json(lock.halts)},
              {"kicks", sample_json(lock.kicks)},
              {"steal", sample_json(lock.steal)},
              {"kick_to_run", sample_json(lock.kick_to_run)},
              {"wait", distribution_json(lock.wait)},
              {"handoff", distribution_json(lock.handoff)}};
    for (const auto& [key, values] : lock.host)
        json[key] = sample_json(values);
    return json;
}

std::vector<Group> groups_of(const Results& results, const Configurations& configurations) {
    std::vector<Group> groups;
    Places places(results);
    const auto frequencies = tsc_frequencies(results);
    for (const Json& record : results.records) {
        const bool is_bench = is_type(record, "bench");
        const std::string what = is_type(record, "histogram") ? text_in(record, "what") : "";
        if (!is_bench && what != "wait" && what != "handoff")
            continue;
        const Place place = places.of(record);
        const RunId id = run_id_of(record);
        const auto configuration = configurations.of(id);
        auto group = std::find_if(groups.begin(), groups.end(),
                                  [&](const Group& g) { return g.place == place && g.configuration == configuration; });
        if (group == groups.end())
            group = groups.insert(groups.end(), {place, configuration, {}, {}});
        group->boots.insert(id.run);
        Lock& lock = group->lock(record);
        if (const auto khz = frequencies.find(id); is_bench)
            add_bench(lock, record, khz == frequencies.end() ? std::nullopt : std::optional{khz->second});
        else
            (what == "wait" ? lock.wait : lock.handoff).add(record);
    }
    return groups;
}

Json group_json(const Group& group, const Configurations& configurations, const std::vector<HostNoise>& noise) {
    std::string title = text_of(group.place);
    if (configurations.count() > 1)
        title += ", configuration " + Configurations::name(group.configuration);
    std::size_t repetitions = 0;
    Json locks = Json::array();
    for (const Lock& lock : group.locks) {
        repetitions = std::max(repetitions, lock.per_second.size());
        locks.push_back(lock_json(lock));
    }
    Json noisy = Json::array();
    for (const HostNoise& boot : noise)
        if (boot.place == group.place && group.boots.contains(boot.boot))
            noisy.push_back(text_of(boot));
    const auto factor = group.place.overcommit();
    return {{"title", std::move(title)},
            {"emulated", group.place.emulated()},
            {"cpus", optional_json(group.place.cpus)},
            {"factor", factor ? Json(*factor) : Json(nullptr)},
            {"boots", group.boots.size()},
            {"repetitions", repetitions},
            {"noise", std::move(noisy)},
            {"locks", std::move(locks)}};
}

/// Groups that differ in nothing but the number of vCPUs for each host CPU, as curves.
Json overcommit_json(const std::vector<Group>& groups, const Configurations& configurations) {
    using Key = std::tuple<std::string, std::string, std::string, std::optional<std::size_t>>;
    std::map<Key, std::vector<const Group*>> sets;
    for (const Group& group : groups)
        if (group.place.overcommit())
            sets[{group.place.bench, group.place.platform, group.place.timing, group.configuration}].push_back(&group);
    Json all = Json::array();
    for (auto& [key, members] : sets) {
        std::set<double> factors;
        for (const Group* group : members)
            factors.insert(group->place.overcommit().value_or(0));
        if (factors.size() < 2)
            continue;
        std::stable_sort(members.begin(), members.end(),
                         [](const Group* a, const Group* b) { return a->place.overcommit() < b->place.overcommit(); });
        std::vector<std::pair<std::string, Json>> curves;
        for (const Group* group : members)
            for (const Lock& lock : group->locks) {
                const std::string name = printable(lock_name(lock.lock, lock.backend));
                auto curve = std::find_if(curves.begin(), curves.end(), [&](const auto& c) { return c.first == name; });
                if (curve == curves.end())
                    curve = curves.insert(curves.end(), {name,
                                                         {{"name", name},
                                                          {"lock", printable(lock.lock)},
                                                          {"backend", printable(lock.backend)},
                                                          {"points", Json::array()}}});
                curve->second["points"].push_back({{"factor", group->place.overcommit().value_or(0)},
                                                   {"cpus", optional_json(group->place.cpus)},
                                                   {"per_second", sample_json(lock.per_second)},
                                                   {"wait_p99", optional_json(lock.wait.percentile(99))}});
            }
        Json locks = Json::array();
        for (auto& [name, curve] : curves)
            locks.push_back(std::move(curve));
        const auto& [bench, platform, timing, configuration] = key;
        std::string title = fmt::format("{} under overcommit, {}", printable(bench), printable(platform));
        if (configurations.count() > 1)
            title += ", configuration " + Configurations::name(configuration);
        all.push_back({{"title", std::move(title)}, {"emulated", timing == "emulated"}, {"locks", std::move(locks)}});
    }
    return all;
}

// --- verdict ---------------------------------------------------------------------------------------------------------

Json tests_json(const Results& results) {
    constexpr std::size_t kMostLines = 200;
    Json lines = Json::array();
    std::size_t left_out = 0;
    for (const Status status : {Status::fail, Status::error, Status::not_run})
        for (const TestResult& test : results.tests) {
            if (test.status != status)
                continue;
            if (lines.size() == kMostLines) {
                ++left_out;
                continue;
            }
            lines.push_back({{"status", status == Status::not_run ? "not run" : name_of(status)},
                             {"name", printable(test.name)},
                             {"run", text_of(test.id)},
                             {"reason", printable(test.reason)}});
        }
    std::map<std::string, std::size_t> skips;
    for (const TestResult& test : results.tests)
        if (test.status == Status::skip)
            ++skips[printable(test.reason)];
    Json facts = Json::array();
    for (const auto& [reason, count] : skips)
        facts.push_back({{"reason", reason}, {"count", count}});
    return {{"troubles", std::move(lines)}, {"left_out", left_out}, {"skips", std::move(facts)}};
}

Json verdict_json(const Results& results) {
    const Tally tally = results.tally();
    Json notes = Json::array();
    for (const RunVerdict& run : results.runs) {
        const std::string mark = text_of(run.id).empty() ? "" : text_of(run.id) + ": ";
        if (run.word != Word::PASS && results.runs.size() > 1)
            notes.push_back(fmt::format("{}{} {}", mark, name_of(run.word), printable(run.reason)));
        for (const std::string& note : run.notes)
            notes.push_back(mark + printable(note));
    }
    return {{"word", name_of(results.word())},
            {"reason", printable(results.reason())},
            {"runs", results.runs.size()},
            {"total", tally.total()},
            {"pass", tally.pass},
            {"fail", tally.fail},
            {"error", tally.error},
            {"skip", tally.skip},
            {"not_run", tally.not_run},
            {"notes", std::move(notes)}};
}

} // namespace

Json page_data(const Results& results) {
    const Configurations configurations(results);
    const std::vector<Group> groups = groups_of(results, configurations);
    Json data = {{"verdict", verdict_json(results)},
                 {"emulated", std::any_of(results.runs.begin(), results.runs.end(),
                                          [](const RunVerdict& run) { return run.timing == "emulated"; })},
                 {"context", configurations.json()},
                 {"tests", tests_json(results)},
                 {"overcommit", overcommit_json(groups, configurations)},
                 {"groups", Json::array()}};
    const std::vector<HostNoise> noise = host_noise_in(Figures(results));
    for (const Group& group : groups)
        data["groups"].push_back(group_json(group, configurations, noise));
    return data;
}

} // namespace spinkick::report
