#include "serve/request_fields.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "config/parse/problem.h"

namespace bev {

RequestFields::RequestFields(const Json& json, std::string where)
    : json_(json), where_(std::move(where)) {
  if (!json.is_object())
    problem_ = ApiError{.message = where_.empty() ? std::string("the body must be a JSON object")
                                                  : format("{} must be an object",
                                                           where_.substr(0, where_.size() - 1))};
}

void RequestFields::refuse(std::string_view name, std::string message) {
  if (!problem_)
    problem_ = ApiError{.message = std::move(message), .param = where_ + std::string(name)};
}

void RequestFields::add(const std::optional<ApiError>& problem) {
  if (!problem_) problem_ = problem;
}

const Json* RequestFields::find(std::string_view name) {
  asked_.emplace(name);
  if (problem_) return nullptr;
  const auto found = json_.find(name);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

bool RequestFields::boolean(std::string_view name, bool otherwise) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  refuse(name, format("{}{} must be true or false", where_, name));
  return otherwise;
}

int64_t RequestFields::integer(std::string_view name, int64_t otherwise, int64_t min, int64_t max) {
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

double RequestFields::real(std::string_view name, double otherwise, double min, double max) {
  const Json* value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_number()) {
    const double number = value->get<double>();
    if (std::isfinite(number) && number >= min && number <= max) return number;
  }
  refuse(name, format("{}{} must be a number from {} to {}", where_, name, min, max));
  return otherwise;
}

std::string RequestFields::text(std::string_view name, std::string_view otherwise, size_t most) {
  const Json* value = find(name);
  if (value == nullptr) return std::string(otherwise);
  if (value->is_string()) {
    const auto& text = value->get_ref<const std::string&>();
    if (text.size() <= most) return text;
  }
  refuse(name, format("{}{} must be a string of at most {} bytes", where_, name, most));
  return std::string(otherwise);
}

std::optional<ApiError> RequestFields::finish() {
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

namespace {

std::string_view type_of(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

}  // namespace

std::string json_of(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return json_text({{"error",
                     {{"message", error.message},
                      {"type", type_of(error.status)},
                      {"param", or_null(error.param)},
                      {"code", or_null(error.code)}}}});
}

HttpResponse response_of(const ApiError& error) {
  HttpResponse response{
      .status = error.status, .content_type = "application/json", .body = json_of(error)};
  if (error.status == 429 || error.status == 503) response.headers.push_back({"Retry-After", "1"});
  if (error.status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
  return response;
}

namespace {

constexpr size_t kMostStops = 16, kLongestStop = 256;
constexpr int kDeepestBody = 8;

bool are_all(const Json& list, bool (*test)(const Json&)) {
  return std::all_of(list.begin(), list.end(), test);
}
bool is_string(const Json& value) { return value.is_string(); }
bool is_integer(const Json& value) { return value.is_number_integer(); }
bool is_id_list(const Json& value) {
  return value.is_array() && !value.empty() && are_all(value, is_integer);
}

RequestPrompt prompt_of(const Json& value, RequestFields& fields, std::string_view name,
                        const RequestLimits& limits) {
  if (value.is_string()) return {.text = value.get<std::string>()};
  RequestPrompt prompt{.text = {}, .ids = {}, .is_ids = true};
  if (static_cast<int64_t>(value.size()) > limits.context) {
    fields.refuse(name, format("{} has {} tokens; this model takes {} at most", name, value.size(),
                               limits.context));
    return prompt;
  }
  for (const Json& each : value) {
    const bool is_huge = each.is_number_unsigned() && each.get<uint64_t>() > INT32_MAX;
    const int64_t id = is_huge ? -1 : each.get<int64_t>();
    if (id < 0 || id >= limits.vocab) {
      fields.refuse(name,
                    format("{} has a token that is not one of 0 to {}", name, limits.vocab - 1));
      return prompt;
    }
    prompt.ids.push_back(static_cast<int32_t>(id));
  }
  return prompt;
}

}  // namespace

std::vector<RequestPrompt> read_prompts(RequestFields& fields, std::string_view name,
                                        const RequestLimits& limits) {
  const Json* value = fields.find(name);
  std::vector<RequestPrompt> prompts;
  if (value == nullptr) {
    fields.refuse(name, format("{} is missing", name));
    return prompts;
  }
  if (value->is_string() || is_id_list(*value)) {
    prompts.push_back(prompt_of(*value, fields, name, limits));
    return prompts;
  }
  if (!value->is_array() || value->empty() ||
      (!are_all(*value, is_string) && !are_all(*value, is_id_list))) {
    fields.refuse(name, format("{} must be a string, a list of strings, a list of token ids or a "
                               "list of lists of token ids, none of the lists empty",
                               name));
    return prompts;
  }
  if (static_cast<int64_t>(value->size()) > limits.texts) {
    fields.refuse(name, format("{} has {} texts; a request may have {} at most", name,
                               value->size(), limits.texts));
    return prompts;
  }
  for (const Json& each : *value) prompts.push_back(prompt_of(each, fields, name, limits));
  return prompts;
}

std::vector<std::string> read_stops(RequestFields& fields, std::string_view name) {
  const Json* value = fields.find(name);
  if (value == nullptr) return {};
  const Json list = value->is_string() ? Json::array({*value}) : *value;
  const auto is_stop = [](const Json& each) {
    return each.is_string() && !each.get_ref<const std::string&>().empty() &&
           each.get_ref<const std::string&>().size() <= kLongestStop;
  };
  if (list.is_array() && list.size() <= kMostStops && are_all(list, is_stop))
    return list.get<std::vector<std::string>>();
  fields.refuse(name, format("{} must be a string or a list of at most {} strings, each of 1 to {} "
                             "bytes",
                             name, kMostStops, kLongestStop));
  return {};
}

ParsedBody parse_body(std::string_view body) {
  try {
    return {.json =
                parse_json(body, "the body", {.bytes = body.size() + 1, .depth = kDeepestBody})};
  } catch (const Error& error) {
    return {.json = {}, .problem = ApiError{.message = error.what()}};
  }
}

}  // namespace bev
