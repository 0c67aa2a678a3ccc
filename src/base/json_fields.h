// Reading a JSON object from an untrusted file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace bev {

// Typed access to the fields of one object; an absent field and null are the same. Every problem is
// a Data error that names the source and the field. The object must outlive this.
class JsonFields {
 public:
  JsonFields(const Json& object, std::string source);

  bool has(const char* name) const { return find(name) != nullptr; }
  // Whether the object has the name at all, null or not.
  bool states(const char* name) const { return object_.contains(name); }
  const Json* find(const char* name) const;

  // A size: at least `least`, and small enough that multiplying a few of them cannot overflow.
  int64_t size(const char* name, int64_t least = 1) const;
  int64_t size_or(const char* name, int64_t otherwise) const {
    return has(name) ? size(name) : otherwise;
  }
  int64_t count(const char* name) const;     // from 0 to 2^62
  uint64_t natural(const char* name) const;  // 0 or more

  double number(const char* name) const;  // finite
  double number_or(const char* name, double otherwise) const {
    return has(name) ? number(name) : otherwise;
  }

  bool flag(const char* name) const;
  bool flag_or(const char* name, bool otherwise) const {
    return has(name) ? flag(name) : otherwise;
  }

  std::string text(const char* name) const;
  std::string text_or(const char* name, const char* otherwise) const {
    return has(name) ? text(name) : otherwise;
  }

  const Json& list(const char* name) const;
  const Json& map(const char* name) const;  // an object with any names
  // The object of this name; nothing when it is absent.
  std::optional<JsonFields> object(const char* name) const;

  // Data error: "SOURCE: NAME = VALUE is not EXPECTED".
  [[noreturn]] void fail(const char* name, std::string_view expected) const;
  // Usage error, for a value that this program has no counterpart for.
  [[noreturn]] void refuse(const char* name, std::string_view have) const;
  const std::string& source() const { return source_; }

 private:
  const Json& required(const char* name) const;
  std::string shown(const char* name) const;

  const Json& object_;
  std::string source_;
};

}  // namespace bev
