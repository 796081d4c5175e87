// SPDX-License-Identifier: BSD-2-Clause
//
// Cells in columns as wide as their widest cell, for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace spinkick::report {

class TextTable {
  public:
    /// Headings; the first `left` columns and the last one start at their left edge, the others, figures, end at their
    /// right one.
    TextTable(std::vector<std::string> headings, std::size_t left);

    /// Missing cells at the end are empty.
    void add(std::vector<std::string> cells);
    /// An empty line.
    void gap() { lines_.emplace_back(); }

    [[nodiscard]] std::string text() const;

  private:
    std::size_t left_;
    std::size_t columns_;
    std::vector<std::vector<std::string>> lines_;
};

} // namespace spinkick::report
