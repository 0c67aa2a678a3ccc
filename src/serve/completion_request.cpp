#include "serve/completion_request.h"

#include "base/format.h"

namespace bev {

namespace {

constexpr double kHighestTemperature = 100;
constexpr int64_t kMostAlternatives = 5;
constexpr size_t kLongestName = 256;

// Fields of OpenAI's that are taken as long as they change nothing.
void refuse_what_is_missing(FieldReader& fields, int64_t samples) {
  for (const std::string_view name : {"presence_penalty", "frequency_penalty"})
    if (fields.real(name, 0, -2, 2) != 0)
      fields.refuse(name, format("{} is not known to this server; leave it out, or see "
                                 "repetition_penalty",
                                 name));
  if (fields.integer("best_of", samples, 1, INT32_MAX) != samples)
    fields.refuse("best_of", "best_of must equal n: this server returns all that it makes");
  if (fields.find("suffix") != nullptr)
    fields.refuse("suffix", "suffix is not known to this server; leave it out");
  if (const Json* bias = fields.find("logit_bias"); bias != nullptr && !bias->empty())
    fields.refuse("logit_bias", "logit_bias is not known to this server; leave it out");
  fields.text("user", "", 4096);
}

bool read_stream_options(FieldReader& fields, bool streams) {
  const Json* options = fields.find("stream_options");
  if (options == nullptr) return false;
  if (!streams) {
    fields.refuse("stream_options", "stream_options needs \"stream\": true");
    return false;
  }
  FieldReader inner(*options, "stream_options.");
  const bool includes_usage = inner.boolean("include_usage", false);
  fields.add(inner.finish());
  return includes_usage;
}

}  // namespace

std::variant<CompletionRequest, ApiError> read_completion_request(std::string_view body,
                                                                  const RequestLimits& limits) {
  const ParsedBody parsed = parse_body(body);
  if (parsed.problem) return *parsed.problem;
  FieldReader fields(parsed.json);
  CompletionRequest request;
  request.model = fields.text("model", "", kLongestName);
  request.prompts = read_prompts(fields, "prompt", limits);
  request.max_tokens =
      fields.integer("max_tokens", std::min<int64_t>(16, limits.max_tokens), 0, limits.max_tokens);
  request.samples = fields.integer("n", 1, 1, limits.texts);
  if (request.samples * static_cast<int64_t>(request.prompts.size()) > limits.texts)
    fields.refuse("n", format("{} prompts, {} times each, are more than {} texts",
                              request.prompts.size(), request.samples, limits.texts));
  request.choice.temperature = fields.real("temperature", 1, 0, kHighestTemperature);
  request.choice.top_p = fields.real("top_p", 1, 0, 1);
  request.choice.top_k = fields.integer("top_k", 0, 0, limits.vocab);
  request.choice.min_p = fields.real("min_p", 0, 0, 1);
  request.choice.repetition_penalty = fields.real("repetition_penalty", 1, 0.01, 100);
  if (fields.find("seed") != nullptr)
    request.seed = static_cast<uint64_t>(fields.integer("seed", 0, INT64_MIN, INT64_MAX));
  if (fields.find("logprobs") != nullptr)
    request.logprobs = fields.integer("logprobs", 0, 0, kMostAlternatives);
  request.echo = fields.boolean("echo", false);
  request.streams = fields.boolean("stream", false);
  request.includes_usage = read_stream_options(fields, request.streams);
  request.stops = read_stops(fields, "stop");
  refuse_what_is_missing(fields, request.samples);
  if (const std::optional<ApiError> problem = fields.finish()) return *problem;
  return request;
}

}  // namespace bev
