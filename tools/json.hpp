// SPDX-License-Identifier: BSD-2-Clause
//
// JSON as all of spinkick-report has it: in the order of the records, for a person reads them too. What its templates
// become is compiled once, in json.cpp; in each file again, that was most of what the compiler did.
#pragma once

#include <nlohmann/json.hpp>

extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace spinkick::report {

using Json = nlohmann::ordered_json;

} // namespace spinkick::report
