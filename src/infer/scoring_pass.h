// One batch through this rank's part of a model, for the losses of its tokens.
#pragma once

#include <array>
#include <vector>

#include "pipeline/batch_uploader.h"
#include "pipeline/executor.h"
#include "pipeline/rank_model.h"

namespace bev {

// How well a token was foreseen.
struct TokenScore {
  double loss = 0;            // nats
  bool is_likeliest = false;  // no other id has a higher logit
};

class ScoringPass {
 public:
  // `tokens`: of the largest batch. `sizes`: peaks() of a rehearsal with it. The model must outlive
  // this, and does nothing else while run() is at work.
  ScoringPass(PlacedModel& model, int64_t tokens, const ArenaSizes& sizes);

  bool has_head() const { return next_ < 0; }
  // All ranks together, with the same batch. The score of each of its targets where the head is;
  // nothing elsewhere, where it returns when the work is issued.
  std::vector<TokenScore> run(const HostBatch& batch);
  // Waits until what this rank has sent has arrived. What throws between run() and this must
  // abandon the pipeline.
  void finish();

  ArenaSizes peaks() const;
  Exec exec();

 private:
  // What goes to the next stage: while one is on its way, the other is made.
  struct Outgoing {
    Tensor hidden{};
    Sent sent{};
  };
  std::vector<TokenScore> scores_of(const Tensor& stats);

  PlacedModel& model_;
  Communicator& pipeline_;
  int before_, next_;  // pipeline ranks; -1: none
  BatchFeed feed_;
  Arena keep_, scratch_, recompute_;
  std::array<Outgoing, 2> outgoing_;
  size_t turn_ = 0;
  Buffer loss_;
};

}  // namespace bev
