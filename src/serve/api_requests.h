// Requests to /v1/completions (OpenAI) and /api (Megatron-LM), parsed and checked.
#pragma once

#include <string_view>
#include <variant>

#include "infer/generation_request.h"
#include "serve/request_fields.h"

namespace bev {

struct CompletionRequest {
  std::string model{};  // empty: whichever there is
  std::vector<RequestPrompt> prompts{};
  int64_t max_tokens = 16;
  int64_t samples = 1;  // of each prompt
  SamplingOptions choice{};
  std::optional<uint64_t> seed{};
  std::optional<int64_t> logprobs{};  // so many alternatives with each token
  bool echo = false;                  // the answer begins with the prompt
  bool streams = false;
  bool includes_usage = false;  // at the end of a stream
  std::vector<std::string> stops{};
};

// Everything that can be refused without a model is refused here, with the field at fault.
std::variant<CompletionRequest, ApiError> read_completion_request(std::string_view body,
                                                                  const RequestLimits& limits);

// A request to /api, the address of Megatron-LM's server, with its fields, defaults and rules.

struct MegatronRequest {
  std::vector<RequestPrompt> prompts{};  // texts
  int64_t tokens = 64;                   // to generate; 0: the prompts are scored
  bool logprobs = false;
  SamplingOptions choice{};
  bool adds_begin = false;  // the token that begins a text stands in front of each prompt
  std::vector<std::string> stops{};
  std::optional<uint64_t> seed{};
  std::optional<int32_t> end{};  // instead of the id that ends a document
  int64_t beams = 0;             // 0: texts are drawn
  double length_penalty = 1;     // of beams
};

std::variant<MegatronRequest, ApiError> read_megatron_request(std::string_view body,
                                                              const RequestLimits& limits);

}  // namespace bev
