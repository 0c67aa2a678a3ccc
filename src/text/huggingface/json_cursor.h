// A value in a JSON file together with where it stands, for messages that name the file, the path
// and what was expected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace bev {

class JsonCursor {
 public:
  // REQUIRES: the value outlives this.
  JsonCursor(const Json& value, std::string file, std::string path = "")
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

  const Json& value() const { return *value_; }
  const std::string& file() const { return file_; }
  std::string where() const;  // "FILE: model.vocab"
  const std::string& path() const { return path_; }

  bool is_null() const { return value_->is_null(); }
  bool has(const std::string& key) const;  // and it is not null

  // A member, or a Data error. `get` of one that may be missing is null.
  JsonCursor at(const std::string& key) const;
  JsonCursor get(const std::string& key) const;
  JsonCursor at(size_t index) const;

  // The value as a type, or a Data error.
  std::string string() const;
  bool boolean() const;
  int64_t integer() const;
  double number() const;
  char32_t character() const;  // a string of one
  size_t size() const;         // of an array
  void expect_object() const;

  // The member, or `otherwise` when it is missing or null.
  bool boolean_or(const std::string& key, bool otherwise) const;

  // Data error: the value, and what is known instead.
  [[noreturn]] void refuse(std::string_view known) const;

 private:
  const Json* value_;
  std::string file_, path_;
};

}  // namespace bev
