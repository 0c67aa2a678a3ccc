// JSON, kept in one place so that the library behind it can change. For text that may be hostile: a
// file is parsed whole or refused with one Data error that names it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

// Reading a JSON object that describes a model and that nobody has checked.

// Typed access to the fields of one object; an absent field and null are the same. Every problem is
// a Data error that names the source and the field.
class JsonFields {
 public:
  JsonFields(const Json& object, std::string source) : object_(object), source_(std::move(source)) {
    BEV_CHECK(object.is_object(), Data, "{} is not a JSON object", source_);
  }

  bool has(const char* name) const { return find(name) != nullptr; }

  // A size: at least `least`, and small enough that products of a few of them cannot overflow.
  int64_t size(const char* name, int64_t least = 1) const {
    constexpr int64_t kMost = int64_t{1} << 30;
    const Json& value = required(name);
    BEV_CHECK(value.is_number_unsigned() && value >= least && value <= kMost, Data,
              "{}: {} = {} is not a whole number from {} to {}", source_, name, shown(value), least,
              kMost);
    return value.get<int64_t>();
  }
  int64_t size_or(const char* name, int64_t otherwise) const {
    return has(name) ? size(name) : otherwise;
  }

  double number(const char* name) const {
    const Json& value = required(name);
    BEV_CHECK(value.is_number(), Data, "{}: {} = {} is not a number", source_, name, shown(value));
    return value.get<double>();
  }
  double number_or(const char* name, double otherwise) const {
    return has(name) ? number(name) : otherwise;
  }

  bool flag_or(const char* name, bool otherwise) const {
    const Json* value = find(name);
    if (value == nullptr) return otherwise;
    BEV_CHECK(value->is_boolean(), Data, "{}: {} = {} is neither true nor false", source_, name,
              shown(*value));
    return value->get<bool>();
  }

  std::string text(const char* name) const {
    const Json& value = required(name);
    BEV_CHECK(value.is_string(), Data, "{}: {} = {} is not a string", source_, name, shown(value));
    return value.get<std::string>();
  }
  std::string text_or(const char* name, const char* otherwise) const {
    return has(name) ? text(name) : otherwise;
  }

  // The object behind a name; nothing when it is absent.
  std::optional<JsonFields> object(const char* name) const {
    const Json* value = find(name);
    if (value == nullptr) return std::nullopt;
    return JsonFields(*value, source_ + ", " + name);
  }
  // Whether the name stands there at all, null or not.
  bool states(const char* name) const { return object_.contains(name); }
  const Json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  // For a file that says something this program has no counterpart for.
  [[noreturn]] void refuse(const char* name, std::string_view have) const {
    const Json* value = find(name);
    throw Error(ErrorKind::Usage, format("{}: {} = {} is not supported; {}", source_, name,
                                         value != nullptr ? shown(*value) : "null", have));
  }
  const std::string& source() const { return source_; }

 private:
  const Json& required(const char* name) const {
    const Json* value = find(name);
    BEV_CHECK(value != nullptr, Data, "{}: {} is missing", source_, name);
    return *value;
  }
  static std::string shown(const Json& value) {
    if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
    return value.is_structured() ? "{...}" : value.dump();
  }

  const Json& object_;
  std::string source_;
};

// JSON to be sent.

// In one line. Bytes that are no UTF-8 are replaced, numbers that are not finite are null.
inline std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace bev
