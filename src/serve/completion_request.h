// A request to /v1/completions: OpenAI's fields, and a few that others have added to them.
#pragma once

#include <string_view>
#include <variant>

#include "infer/generation_request.h"
#include "serve/request_prompt.h"

namespace bev {

struct CompletionRequest {
  std::string model{};  // empty: whichever there is
  std::vector<Prompt> prompts{};
  int64_t max_tokens = 16;
  int64_t samples = 1;  // of each prompt
  ChoiceOptions choice{};
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

}  // namespace bev
