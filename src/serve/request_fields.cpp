#include "serve/request_fields.h"

#include <cmath>
#include <vector>

#include "base/format.h"
#include "config/parse/nearest.h"

namespace bev {

FieldReader::FieldReader(const Json& json, std::string where)
    : json_(json), where_(std::move(where)) {
  if (!json.is_object())
    problem_ = ApiError{.message = where_.empty() ? std::string("the body must be a JSON object")
                                                  : format("{} must be an object",
                                                           where_.substr(0, where_.size() - 1))};
}

void FieldReader::refuse(std::string_view name, std::string message) {
  if (!problem_)
    problem_ = ApiError{.message = std::move(message), .param = where_ + std::string(name)};
}

void FieldReader::add(const std::optional<ApiError>& problem) {
  if (!problem_) problem_ = problem;
}

const Json* FieldReader::find(std::string_view name) {
  asked_.emplace(name);
  if (problem_) return nullptr;
  const auto found = json_.find(name);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

bool FieldReader::boolean(std::string_view name, bool otherwise) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  refuse(name, format("{}{} must be true or false", where_, name));
  return otherwise;
}

int64_t FieldReader::integer(std::string_view name, int64_t otherwise, int64_t min, int64_t max) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_number_integer()) {
    // What does not fit is unsigned and larger than any maximum.
    const bool is_huge = value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX;
    const int64_t number = is_huge ? INT64_MAX : value->get<int64_t>();
    if (!is_huge && number >= min && number <= max) return number;
  }
  refuse(name, format("{}{} must be an integer from {} to {}", where_, name, min, max));
  return otherwise;
}

double FieldReader::real(std::string_view name, double otherwise, double min, double max) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_number()) {
    const double number = value->get<double>();
    if (std::isfinite(number) && number >= min && number <= max) return number;
  }
  refuse(name, format("{}{} must be a number from {} to {}", where_, name, min, max));
  return otherwise;
}

std::string FieldReader::text(std::string_view name, std::string_view otherwise, size_t most) {
  const Json* value = find(name);
  if (value == nullptr) return std::string(otherwise);
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    if (text.size() <= most) return text;
  }
  refuse(name, format("{}{} must be a string of at most {} bytes", where_, name, most));
  return std::string(otherwise);
}

std::optional<ApiError> FieldReader::finish() {
  if (!json_.is_object()) return problem_;
  for (const auto& [name, value] : json_.items()) {
    if (asked_.contains(name)) continue;
    const std::string near = nearest(name, std::vector<std::string>(asked_.begin(), asked_.end()));
    problem_ = ApiError{.message = format("there is no field {}{}", in_quotes(where_ + name),
                                          near.empty() ? "" : format("; did you mean {}?", near)),
                        .param = where_ + name.substr(0, 100)};
    break;
  }
  return problem_;
}

}  // namespace bev
