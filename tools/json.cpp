// SPDX-License-Identifier: BSD-2-Clause
#include "tools/json.hpp"

template class nlohmann::basic_json<nlohmann::ordered_map>;
