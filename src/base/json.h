// JSON, kept in one place so that the library behind it can change. For text that may be hostile: a
// file is parsed whole or refused with one Data error that names it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/check.h"

namespace bev {

// Objects keep their names sorted, so that what is written is the same every time.
using Json = nlohmann::json;

struct JsonLimits {
  size_t bytes = size_t{100} * 1000 * 1000;
  int depth = 64;  // of nested arrays and objects
};

// Parses the whole text. A syntax error, text that is not UTF-8, a number out of range, a repeated
// name in an object and text beyond the limits are Data errors that name `source` and, where there
// is one, the byte.
Json parse_json(std::string_view text, std::string_view source, JsonLimits limits = {});

// The same of a file.
Json read_json(const std::filesystem::path& path, JsonLimits limits = {});

// The text in quotes with everything unprintable escaped, cut to a readable length: for messages
// that repeat what a file says.
std::string in_quotes(std::string_view text);

// JSON to be sent.

// In one line. Bytes that are no UTF-8 are replaced, numbers that are not finite are null.
inline std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace bev
