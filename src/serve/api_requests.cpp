#include "serve/api_requests.h"

#include <algorithm>

#include "base/format.h"

namespace bev {

namespace {

constexpr double kHighestTemperature = 100;
constexpr int64_t kMostAlternatives = 5;
constexpr size_t kLongestName = 256;

// Fields of OpenAI's that are taken as long as they change nothing.
void refuse_what_is_missing(RequestFields& fields, int64_t samples) {
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

bool read_stream_options(RequestFields& fields, bool streams) {
  const Json* options = fields.find("stream_options");
  if (options == nullptr) return false;
  if (!streams) {
    fields.refuse("stream_options", "stream_options needs \"stream\": true");
    return false;
  }
  RequestFields inner(*options, "stream_options.");
  const bool includes_usage = inner.boolean("include_usage", false);
  fields.add(inner.finish());
  return includes_usage;
}

}  // namespace

std::variant<CompletionRequest, ApiError> read_completion_request(std::string_view body,
                                                                  const RequestLimits& limits) {
  const ParsedBody parsed = parse_body(body);
  if (parsed.problem) return *parsed.problem;
  RequestFields fields(parsed.json);
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

namespace {

constexpr double kMaxTemperature = 100;
constexpr int64_t kMostTopK = 1000, kMostBeams = 100;
constexpr int64_t kDefaultTokens = 64;

// Names that its older versions had.
void refuse_old_names(RequestFields& fields) {
  if (fields.find("max_len") != nullptr)
    fields.refuse("max_len", "max_len is not used any more; tokens_to_generate is");
  if (fields.find("sentences") != nullptr)
    fields.refuse("sentences", "sentences is not used any more; prompts is");
}

std::vector<RequestPrompt> read_texts(RequestFields& fields, const RequestLimits& limits) {
  const Json* value = fields.find("prompts");
  if (value != nullptr &&
      (!value->is_array() || value->empty() ||
       !std::all_of(value->begin(), value->end(), [](const Json& j) { return j.is_string(); })))
    fields.refuse("prompts", "prompts must be a list of strings, not empty");
  return read_prompts(fields, "prompts", limits);
}

SamplingOptions read_choice(RequestFields& fields, const RequestLimits& limits) {
  SamplingOptions choice;
  choice.temperature = fields.real("temperature", 1, 0, kMaxTemperature);
  if (choice.temperature == 0)
    fields.refuse("temperature", format("temperature must be above 0, at most {}; top_k 1 always "
                                        "takes the likeliest token",
                                        kMaxTemperature));
  choice.top_k = fields.integer("top_k", 0, 0, std::min(kMostTopK, limits.vocab));
  const double top_p = fields.real("top_p", 0, 0, 1);
  if (top_p > 0 && choice.top_k > 0)
    fields.refuse("top_p", "top_k and top_p exclude each other: one of them must be 0");
  choice.top_p_decay = fields.real("top_p_decay", 0, 0, 1);
  choice.top_p_bound = fields.real("top_p_bound", 0, 0, 1);
  if (top_p == 0 && choice.top_p_decay > 0)
    fields.refuse("top_p_decay", "top_p_decay needs top_p above 0");
  if (choice.top_p_bound > top_p)
    fields.refuse("top_p_bound", "top_p_bound must not be above top_p");
  // Its 0 means that nothing is cut off, or that nothing shrinks.
  choice.top_p = top_p == 0 ? 1 : top_p;
  if (choice.top_p_decay == 0) choice.top_p_decay = 1;
  return choice;
}

void read_ends(RequestFields& fields, const RequestLimits& limits, MegatronRequest& request) {
  if (fields.boolean("stop_on_double_eol", false)) request.stops.emplace_back("\n\n");
  if (fields.boolean("stop_on_eol", false)) request.stops.emplace_back("\n");
  if (fields.boolean("prevent_newline_after_colon", false))
    fields.refuse("prevent_newline_after_colon",
                  "prevent_newline_after_colon is not known to this server; leave it out");
  if (fields.find("stop_token") != nullptr)
    request.end = static_cast<int32_t>(fields.integer("stop_token", 0, 0, limits.vocab - 1));
}

void read_beams(RequestFields& fields, MegatronRequest& request) {
  if (fields.find("beam_width") != nullptr)
    request.beams = fields.integer("beam_width", 1, 1, kMostBeams);
  request.length_penalty = fields.real("length_penalty", 1, -100, 100);
  if (request.beams > 0 && request.prompts.size() > 1)
    fields.refuse("beam_width", "beam_width needs exactly one prompt");
}

}  // namespace

std::variant<MegatronRequest, ApiError> read_megatron_request(std::string_view body,
                                                              const RequestLimits& limits) {
  const ParsedBody parsed = parse_body(body);
  if (parsed.problem) return *parsed.problem;
  RequestFields fields(parsed.json);
  refuse_old_names(fields);
  MegatronRequest request;
  request.prompts = read_texts(fields, limits);
  request.tokens = fields.integer("tokens_to_generate", std::min(kDefaultTokens, limits.max_tokens),
                                  0, limits.max_tokens);
  request.logprobs = fields.boolean("logprobs", false);
  if (request.tokens == 0 && !request.logprobs)
    fields.refuse("tokens_to_generate",
                  "tokens_to_generate 0 only scores the prompts: it needs "
                  "\"logprobs\": true");
  request.choice = read_choice(fields, limits);
  request.adds_begin = fields.boolean("add_BOS", false);
  const bool has_empty =
      std::any_of(request.prompts.begin(), request.prompts.end(),
                  [](const RequestPrompt& prompt) { return prompt.text.empty(); });
  if (has_empty && !request.adds_begin)
    fields.refuse("prompts", "an empty prompt needs \"add_BOS\": true");
  if (fields.find("random_seed") != nullptr) {
    // -1: none.
    const int64_t seed = fields.integer("random_seed", 0, -1, INT64_MAX);
    if (seed >= 0) request.seed = static_cast<uint64_t>(seed);
  }
  fields.boolean("no_log", false);  // nothing of a request is ever logged
  read_ends(fields, limits, request);
  read_beams(fields, request);
  if (const std::optional<ApiError> problem = fields.finish()) return *problem;
  return request;
}

}  // namespace bev
