// SPDX-License-Identifier: BSD-2-Clause
//
// check_trace FILE KIND...: the file keeps the rules of the Chrome trace event format, and has at least one slice or
// arrow of each kind: hold, spin, halt, kick (slices), handoff, kick-arrow.
#include <cstdio>
#include <fstream>

#include "tests/host/trace_rules.hpp"

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: check_trace FILE KIND...\n");
        return 2;
    }
    std::ifstream in(argv[1]);
    const auto file = nlohmann::json::parse(in, nullptr, false);
    if (file.is_discarded()) {
        std::fprintf(stderr, "%s: no JSON\n", argv[1]);
        return 1;
    }
    const auto facts = spinkick::report::check_trace(file);
    for (const auto& breach : facts.breaches)
        std::fprintf(stderr, "%s: %s\n", argv[1], breach.c_str());
    bool all = facts.breaches.empty();
    const auto count = [](const auto& map, const std::string& key) {
        const auto found = map.find(key);
        return found == map.end() ? std::size_t{0} : found->second;
    };
    for (int i = 2; i < argc; ++i) {
        const std::string kind = argv[i];
        const auto seen = kind == "handoff"      ? count(facts.arrows, kind)
                          : kind == "kick-arrow" ? count(facts.arrows, "kick")
                                                 : count(facts.slices, kind);
        std::printf("%-10s %zu\n", kind.c_str(), seen);
        if (seen == 0) {
            std::fprintf(stderr, "%s: nothing of the kind %s\n", argv[1], kind.c_str());
            all = false;
        }
    }
    return all ? 0 : 1;
}
