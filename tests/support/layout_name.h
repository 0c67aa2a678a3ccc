// A layout as the name of a test, which may have no dots and dashes.
#pragma once

#include <algorithm>
#include <string>

namespace bev::test {

inline std::string layout_name(std::string layout) {
  std::replace_if(layout.begin(), layout.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return layout;
}

}  // namespace bev::test
