// The answer of /api, in the form of Megatron-LM's server.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "serve/api_requests.h"
#include "serve/generation_job.h"
#include "serve/monitoring.h"

namespace bev {

class MegatronJob final : public TimedJob {
 public:
  MegatronJob(const ServedModel& model, MegatronRequest request, HttpAnswer& answer, PostCall post,
              ServeMetrics& metrics, WorkClock& clock);

  // As of CompletionJob.
  std::optional<ApiError> start(uint64_t number);

  void expire() override;

 private:
  struct Text {
    std::vector<int32_t> ids{};  // of the prompt, then of all
    std::vector<double> logprobs{};
    std::string text{};
  };

  void on_update(const TextUpdate& update);
  void finish();
  void fail(const ApiError& error);
  void note();

  const ServedModel& model_;
  MegatronRequest request_;
  HttpAnswer& answer_;
  ServeMetrics& metrics_;
  double began_;
  bool has_first_ = false, is_over_ = false;
  int64_t prompt_tokens_ = 0;
  std::vector<Text> results_;
  GenerationGroup texts_;
};

// The ids of a prompt, with the token that begins a text where that is asked for; what does not fit
// the model is an error.
std::optional<ApiError> encode_prompt(const ServedModel& model, const MegatronRequest& request,
                                      const RequestPrompt& prompt, std::vector<int32_t>& ids);

// {"message": ...}, which is where the clients of that server look.
HttpResponse megatron_response_of(const ApiError& error);

// The answer of /api where it asks for a search among several continuations.

class BeamSearchJob final : public TimedJob {
 public:
  BeamSearchJob(const ServedModel& model, MegatronRequest request, HttpAnswer& answer,
                PostCall post, WorkClock& clock);
  ~BeamSearchJob() override;

  // As of CompletionJob.
  std::optional<ApiError> start(uint64_t number);

  void expire() override;

 private:
  void answer_with(const std::vector<Beam>* beams);

  const ServedModel& model_;
  MegatronRequest request_;
  HttpAnswer& answer_;
  PostCall post_;
  GenerationRequest prompt_;              // prompt and source
  std::shared_ptr<BeamSearchJob*> self_;  // null when it is gone; of the server's thread
  std::unique_ptr<GenerationService::Ticket> ticket_;
  bool is_over_ = false;
};

}  // namespace bev
