// Files with a JSON object in each line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace bev {

// Calls f for each line that is not blank, without its end. What f throws begins with the name and
// the number of the line, which counts from 1.
void for_each_json_line(std::string_view name, std::string_view text,
                        FunctionRef<void(std::string_view line, int64_t number)> f);

}  // namespace bev
