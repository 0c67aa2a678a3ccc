#include "text/huggingface/json_cursor.h"

#include "base/check.h"
#include "text/utf8.h"

namespace bev {

namespace {

const Json kNull;

std::string shortened(const Json& value) {
  return in_quotes(value.dump(-1, ' ', true, Json::error_handler_t::replace));
}

}  // namespace

std::string JsonCursor::where() const {
  return path_.empty() ? file_ : format("{}: {}", file_, path_);
}

bool JsonCursor::has(const std::string& key) const {
  return value_->is_object() && value_->contains(key) && !value_->at(key).is_null();
}

JsonCursor JsonCursor::get(const std::string& key) const {
  expect_object();
  const auto found = value_->find(key);
  return {found == value_->end() ? kNull : *found, file_, path_.empty() ? key : path_ + "." + key};
}

JsonCursor JsonCursor::at(const std::string& key) const {
  expect_object();
  BEV_CHECK(value_->contains(key), Data, "{}: {} is missing", where(), in_quotes(key));
  return get(key);
}

JsonCursor JsonCursor::at(size_t index) const {
  BEV_CHECK(value_->is_array() && index < value_->size(), Data, "{}: element {} is missing",
            where(), index);
  return {(*value_)[index], file_, format("{}[{}]", path_, index)};
}

std::string JsonCursor::string() const {
  if (!value_->is_string()) refuse("a string");
  return value_->get<std::string>();
}

bool JsonCursor::boolean() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

int64_t JsonCursor::integer() const {
  if (!value_->is_number_integer() ||
      (value_->is_number_unsigned() && value_->get<uint64_t>() > INT64_MAX))
    refuse("an integer");
  return value_->get<int64_t>();
}

double JsonCursor::number() const {
  if (!value_->is_number()) refuse("a number");
  return value_->get<double>();
}

char32_t JsonCursor::character() const {
  const std::string text = string();
  if (text.empty() || utf8_character(text.data()).length != text.size())
    refuse("a string of one character");
  return utf8_character(text.data()).code;
}

size_t JsonCursor::size() const {
  if (!value_->is_array()) refuse("a list");
  return value_->size();
}

void JsonCursor::expect_object() const {
  if (!value_->is_object()) refuse("an object");
}

bool JsonCursor::boolean_or(const std::string& key, bool otherwise) const {
  return has(key) ? get(key).boolean() : otherwise;
}

void JsonCursor::refuse(std::string_view known) const {
  throw Error(ErrorKind::Data,
              format("{}: {} is not known here; known: {}", where(), shortened(*value_), known));
}

}  // namespace bev
