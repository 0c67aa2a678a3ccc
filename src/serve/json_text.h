// JSON to be sent.
#pragma once

#include <string>

#include "base/json.h"

namespace bev {

// In one line. Bytes that are no UTF-8 are replaced, numbers that are not finite are null.
inline std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace bev
