#include "serve/request_prompt.h"

#include <algorithm>

#include "base/error.h"
#include "base/format.h"

namespace bev {

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

Prompt prompt_of(const Json& value, FieldReader& fields, std::string_view name,
                 const RequestLimits& limits) {
  if (value.is_string()) return {.text = value.get<std::string>()};
  Prompt prompt{.text = {}, .ids = {}, .is_ids = true};
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

std::vector<Prompt> read_prompts(FieldReader& fields, std::string_view name,
                                 const RequestLimits& limits) {
  const Json* value = fields.find(name);
  std::vector<Prompt> prompts;
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

std::vector<std::string> read_stops(FieldReader& fields, std::string_view name) {
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
