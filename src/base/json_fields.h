// Reading a JSON object that describes a model and that nobody has checked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/json.h"

namespace bev {

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

}  // namespace bev
