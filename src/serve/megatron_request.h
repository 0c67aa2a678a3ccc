// A request to /api, the address of Megatron-LM's server, with its fields, defaults and rules.
#pragma once

#include <string_view>
#include <variant>

#include "infer/generation_request.h"
#include "serve/request_prompt.h"

namespace bev {

struct MegatronRequest {
  std::vector<Prompt> prompts{};  // texts
  int64_t tokens = 64;            // to generate; 0: the prompts are scored
  bool logprobs = false;
  ChoiceOptions choice{};
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
