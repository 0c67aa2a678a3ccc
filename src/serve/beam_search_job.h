// The answer of /api where it asks for a search among several continuations.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "serve/generation_group.h"
#include "serve/megatron_request.h"
#include "serve/served_model.h"
#include "serve/timed_job.h"

namespace bev {

class BeamWork final : public TimedWork {
 public:
  BeamWork(const ServedModel& model, MegatronRequest request, HttpAnswer& answer, PostCall post,
           WorkClock& clock);
  ~BeamWork() override;

  // As of CompletionWork.
  std::optional<ApiError> start(uint64_t number);

  void expire() override;

 private:
  void answer_with(const std::vector<Beam>* beams);

  const ServedModel& model_;
  MegatronRequest request_;
  HttpAnswer& answer_;
  PostCall post_;
  std::vector<int32_t> prompt_;
  std::shared_ptr<BeamWork*> self_;  // null when it is gone; of the server's thread
  std::unique_ptr<GenerationService::Ticket> ticket_;
  bool is_over_ = false;
};

}  // namespace bev
