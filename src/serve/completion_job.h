// The answer of /v1/completions, whole or as a stream of server-sent events.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "serve/api_requests.h"
#include "serve/generation_job.h"
#include "serve/monitoring.h"

namespace bev {

class CompletionJob final : public TimedJob {
 public:
  CompletionJob(const ServedModel& model, CompletionRequest request, HttpAnswer& answer,
                PostCall post, ServeMetrics& metrics, WorkClock& clock);

  // Why it cannot begin; none: it has begun. `number` tells requests apart.
  std::optional<ApiError> start(uint64_t number);

  void expire() override;

 private:
  // The columns of "logprobs" that were not sent yet.
  struct TokenList {
    Json tokens = Json::array(), logprobs = Json::array(), alternatives = Json::array(),
         offsets = Json::array();
  };
  struct Choice {
    std::vector<int32_t> prompt{};
    std::string echo{};  // to be said before anything else
    bool has_begun = false;
    int32_t last = -1;       // token
    int64_t characters = 0;  // said
    std::string text{};      // not sent yet
    TokenList list{};
    std::string reason{};
  };

  std::string encode(const RequestPrompt& prompt, std::vector<int32_t>& ids) const;
  void on_update(const TextUpdate& update);
  void begin_choice(Choice& choice, const TokenEvent& event);
  void add_token(Choice& choice, const ScoredToken& token, bool is_scored,
                 const std::vector<ScoredToken>& alternatives);
  void cut_list(Choice& choice) const;
  void send_piece(size_t number);
  void finish();
  void fail(const ApiError& error);
  void note();
  Json choice_json(size_t number);
  Json frame(Json choices) const;
  Json usage() const;

  const ServedModel& model_;
  CompletionRequest request_;
  HttpAnswer& answer_;
  ServeMetrics& metrics_;
  std::string id_;
  int64_t created_;
  double began_;
  bool has_first_ = false, is_streaming_ = false, is_over_ = false;
  int64_t prompt_tokens_ = 0;
  std::vector<Choice> choices_;
  GenerationGroup texts_;
};

}  // namespace bev
