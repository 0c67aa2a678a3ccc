// A table in plain text whose columns are described once.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/format.h"

namespace bev {

// The layout is a format string with a field per column: "{:<18} {:<*} {:>9.1f}"; `width` replaces
// each "*". Text in a column of numbers, such as a heading, is padded like the numbers.
class TextTable {
 public:
  // REQUIRES: the layout ends with a field.
  explicit TextTable(std::string_view layout, size_t width = 1) {
    for (size_t end = 0; !layout.empty(); layout.remove_prefix(end)) {
      end = layout.find('}') + 1;
      std::string number(layout.substr(0, end));
      if (const size_t star = number.find('*'); star != std::string::npos)
        number.replace(star, 1, format("{}", width));
      const size_t dot = number.find('.', number.find('{'));
      columns_.push_back({number, dot == std::string::npos ? number : number.substr(0, dot) + "}"});
    }
  }

  // Adds a row. It may have fewer cells than the layout has columns.
  template <class... Cells>
  void operator()(const Cells&... cells) {
    size_t i = 0;
    ((text += fmt::format(
          fmt::runtime(std::is_arithmetic_v<Cells> ? columns_.at(i).number : columns_.at(i).text),
          cells),
      ++i),
     ...);
    text += '\n';
  }

  // The same of cells that are text, where their number is known at run time only.
  void operator()(const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i)
      text += fmt::format(fmt::runtime(columns_.at(i).text), cells[i]);
    text += '\n';
  }

  std::string text;  // the rows so far; other lines may be added

 private:
  // The format strings of a number and of a text, each with the layout's characters before the
  // field. `text` has no precision and type if the field has a precision.
  struct Column {
    std::string number, text;
  };
  std::vector<Column> columns_;
};

}  // namespace bev
