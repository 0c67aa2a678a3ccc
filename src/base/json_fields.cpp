#include "base/json_fields.h"

#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/format.h"

namespace bev {

JsonFields::JsonFields(const Json& object, std::string source)
    : object_(object), source_(std::move(source)) {
  BEV_CHECK(object.is_object(), Data, "{} is not a JSON object", source_);
}

const Json* JsonFields::find(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const Json& JsonFields::required(const char* name) const {
  const Json* value = find(name);
  BEV_CHECK(value != nullptr, Data, "{}: {} is missing", source_, name);
  return *value;
}

std::string JsonFields::shown(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) return "null";
  if (value->is_string()) return in_quotes(value->get_ref<const std::string&>());
  return value->is_structured() ? "{...}" : value->dump();
}

void JsonFields::fail(const char* name, std::string_view expected) const {
  throw Error(ErrorKind::Data,
              format("{}: {} = {} is not {}", source_, name, shown(name), expected));
}

void JsonFields::refuse(const char* name, std::string_view have) const {
  throw Error(ErrorKind::Usage,
              format("{}: {} = {} is not supported; {}", source_, name, shown(name), have));
}

int64_t JsonFields::size(const char* name, int64_t least) const {
  constexpr int64_t kMost = int64_t{1} << 30;
  const Json& value = required(name);
  if (!value.is_number_unsigned() || value < least || value > kMost)
    fail(name, format("a whole number from {} to {}", least, kMost));
  return value.get<int64_t>();
}

int64_t JsonFields::count(const char* name) const {
  const Json& value = required(name);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > uint64_t{1} << 62)
    fail(name, "a whole number from 0 to 2^62");
  return value.get<int64_t>();
}

uint64_t JsonFields::natural(const char* name) const {
  const Json& value = required(name);
  if (!value.is_number_unsigned()) fail(name, "a whole number of 0 or more");
  return value.get<uint64_t>();
}

double JsonFields::number(const char* name) const {
  const Json& value = required(name);
  if (!value.is_number() || !std::isfinite(value.get<double>())) fail(name, "a finite number");
  return value.get<double>();
}

bool JsonFields::flag(const char* name) const {
  const Json& value = required(name);
  if (!value.is_boolean()) fail(name, "true or false");
  return value.get<bool>();
}

std::string JsonFields::text(const char* name) const {
  const Json& value = required(name);
  if (!value.is_string()) fail(name, "a string");
  return value.get<std::string>();
}

const Json& JsonFields::list(const char* name) const {
  const Json& value = required(name);
  if (!value.is_array()) fail(name, "a list");
  return value;
}

const Json& JsonFields::map(const char* name) const {
  const Json& value = required(name);
  if (!value.is_object()) fail(name, "an object");
  return value;
}

std::optional<JsonFields> JsonFields::object(const char* name) const {
  const Json* value = find(name);
  if (value == nullptr) return std::nullopt;
  return JsonFields(*value, source_ + ", " + name);
}

}  // namespace bev
