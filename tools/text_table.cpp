// SPDX-License-Identifier: BSD-2-Clause
#include "tools/text_table.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace spinkick::report {

TextTable::TextTable(std::vector<std::string> headings, std::size_t left) : left_(left), columns_(headings.size()) {
    lines_.push_back(std::move(headings));
}

void TextTable::add(std::vector<std::string> cells) {
    cells.resize(columns_);
    lines_.push_back(std::move(cells));
}

std::string TextTable::text() const {
    std::vector<std::size_t> width(columns_, 0);
    for (const auto& line : lines_)
        for (std::size_t column = 0; column < line.size(); ++column)
            width[column] = std::max(width[column], line[column].size());
    std::string out;
    for (const auto& line : lines_) {
        std::string row;
        for (std::size_t column = 0; column < line.size(); ++column) {
            const bool at_left = column < left_ || column + 1 == columns_;
            row += column == 0 ? "" : " ";
            row += at_left ? fmt::format("{:<{}}", line[column], width[column])
                           : fmt::format("{:>{}}", line[column], width[column]);
        }
        out += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
    }
    return out;
}

} // namespace spinkick::report
