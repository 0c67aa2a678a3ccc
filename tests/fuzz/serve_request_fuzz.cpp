// libFuzzer: any bytes as the body of a request are refused with a reason, or become a request
// whose numbers are all in range.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "serve/api_requests.h"

namespace {

constexpr bev::RequestLimits kLimits{.context = 64, .max_tokens = 50, .texts = 8, .vocab = 257};

void expect(bool is_true) {
  if (!is_true) std::abort();
}

void expect_in_range(const bev::SamplingOptions& c) {
  expect(c.temperature >= 0 && c.temperature <= 100);
  expect(c.top_k >= 0 && c.top_k <= kLimits.vocab);
  expect(c.top_p >= 0 && c.top_p <= 1 && c.min_p >= 0 && c.min_p <= 1);
  expect(c.top_p_decay >= 0 && c.top_p_decay <= 1 && c.top_p_bound >= 0 && c.top_p_bound <= 1);
  expect(c.repetition_penalty >= 0.01 && c.repetition_penalty <= 100);
}

void expect_prompts(const std::vector<bev::Prompt>& prompts) {
  expect(!prompts.empty() && static_cast<int64_t>(prompts.size()) <= kLimits.texts);
  for (const bev::Prompt& prompt : prompts) {
    expect(!prompt.is_ids || !prompt.ids.empty());
    expect(static_cast<int64_t>(prompt.ids.size()) <= kLimits.context);
    for (const int32_t id : prompt.ids) expect(id >= 0 && id < kLimits.vocab);
  }
}

void expect_stops(const std::vector<std::string>& stops) {
  expect(stops.size() <= 16);
  for (const std::string& stop : stops) expect(!stop.empty() && stop.size() <= 256);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto completion = bev::read_completion_request(body, kLimits);
  if (const auto* error = std::get_if<bev::ApiError>(&completion)) {
    expect(error->status == 400 && !error->message.empty());
    expect(!bev::response_of(*error).body.empty());
  } else {
    const auto& r = std::get<bev::CompletionRequest>(completion);
    expect_prompts(r.prompts);
    expect_in_range(r.choice);
    expect_stops(r.stops);
    expect(r.max_tokens >= 0 && r.max_tokens <= kLimits.max_tokens);
    expect(r.samples >= 1 && r.samples * static_cast<int64_t>(r.prompts.size()) <= kLimits.texts);
    expect(!r.logprobs || (*r.logprobs >= 0 && *r.logprobs <= 5));
  }
  const auto megatron = bev::read_megatron_request(body, kLimits);
  if (const auto* r = std::get_if<bev::MegatronRequest>(&megatron)) {
    expect_prompts(r->prompts);
    expect_in_range(r->choice);
    expect(r->choice.temperature > 0 && r->tokens >= 0 && r->tokens <= kLimits.max_tokens);
    expect(!r->end || (*r->end >= 0 && *r->end < kLimits.vocab));
  }
  return 0;
}
