// The rows of a plan's tables.
#pragma once

#include <string>

#include "base/format.h"

namespace bev {

inline std::string report_row(const std::string& name, const std::string& value,
                              const std::string& note = "") {
  return note.empty() ? format("  {:<34} {:>24}\n", name, value)
                      : format("  {:<34} {:>24}  {}\n", name, value, note);
}

}  // namespace bev
