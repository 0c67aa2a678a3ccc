// Per-token losses of given sequences, on any ranks; batches, and windows of long token streams.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "infer/inference_stage.h"
#include "infer/loaded_model.h"
#include "infer/scoring_item.h"
#include "pipeline/batch_uploader.h"
#include "pipeline/executor.h"
#include "pipeline/rank_model.h"

namespace bev {

// Runs one batch through this rank's part of a model and returns the scores of its tokens.

// The score of one predicted token.
struct TokenScore {
  double loss = 0;            // nats
  bool is_likeliest = false;  // no other id has a higher logit
};

class ScoringPass {
 public:
  // `tokens`: of the largest batch. `sizes`: peaks() of a dry run with that batch. The model must
  // outlive this and must not be used otherwise during run().
  ScoringPass(RankModel& model, int64_t tokens, const ArenaSizes& sizes);

  bool has_head() const { return next_ < 0; }
  // Collective, with the same batch on all ranks. Ranks with the head return the score of each
  // target; the others return nothing, as soon as their work is issued.
  std::vector<TokenScore> run(const HostBatch& batch);
  // Waits until the data that this rank sent has arrived. If something throws between run() and
  // finish(), the caller must abandon the pipeline.
  void finish();

  ArenaSizes peaks() const;
  Exec exec();

 private:
  // Output for the next stage. There are two: one is sent while the other is computed.
  struct Outgoing {
    Tensor hidden{};
    SendTicket sent{};
  };
  std::vector<TokenScore> scores_of(const Tensor& stats);

  RankModel& model_;
  Communicator& pipeline_;
  int before_, next_;  // pipeline ranks; -1: none
  BatchUploader feed_;
  Arena keep_, scratch_, recompute_;
  std::array<Outgoing, 2> outgoing_;
  size_t turn_ = 0;
  InferenceStage stage_;
};

// Items that are created on demand; read() may be called on several threads.
struct ScoringItems {
  int64_t count = 0;
  std::function<ScoringItem(int64_t index)> read{};
};
// The given items in order of length, longest first: a batch is as long as its longest item, so
// that items of a batch should have similar lengths. The given items must outlive the result.
struct OrderedItems {
  ScoringItems items;
  std::vector<int64_t> numbers;  // numbers[i]: index of item i in the given list
};
OrderedItems ordered_by_length(const std::vector<ScoringItem>& items);

class Scorer {
 public:
  // The batch size is that of model.config().train; an item has at most one id more than a
  // sequence. Collective; the model must outlive this. Usage error if the vocabulary is too small
  // for the tensor ranks.
  explicit Scorer(LoadedModel& model);

  // Passes the scores of each item to `sink`, in the order of the items, and the number of items
  // done to on_done. Collective, with the same items on all ranks; every rank gets all scores.
  using Sink = FunctionRef<void(int64_t index, std::span<const TokenScore> scores)>;
  void score(
      const ScoringItems& items, Sink sink,
      FunctionRef<void(int64_t done)> on_done = [](int64_t) {});

 private:
  void fill(std::span<const ScoringItem> items);
  // The scores of all items, concatenated.
  std::vector<TokenScore> score_together(std::span<const ScoringItem> items);
  void share(std::vector<TokenScore>& scores, size_t count);

  LoadedModel& model_;
  int64_t sequences_, length_;
  ScoringPass pass_;
  HostBatch batch_;
  Buffer shared_;
};

// A stream of tokens cut into windows, so that each token is scored exactly once.

// Tokens by position. REQUIRES: begin + out.size() <= size. read() may be called on several
// threads.
struct TokenStream {
  int64_t size = 0;
  std::function<void(int64_t begin, std::span<int32_t> out)> read{};
};
// REQUIRES: `ids` outlives the stream.
TokenStream stream_of(const std::vector<int32_t>& ids);
// `size` tokens of a stream, from `begin` on.
TokenStream part_of(const TokenStream& stream, int64_t begin, int64_t size);
// The concatenation of two streams.
TokenStream joined(TokenStream first, TokenStream second);

// Windows of `length` tokens. Adjacent windows share `overlap` tokens, which the later one reads
// but does not score. The first token of the stream is scored with `before` (the end of another
// document) as its context, or not at all if `before` is negative.
class ScoringWindows {
 public:
  // REQUIRES: 0 <= overlap < length, at least one token can be scored.
  ScoringWindows(TokenStream stream, int64_t length, int64_t overlap, int32_t before);

  int64_t windows() const { return windows_; }
  int64_t scored() const { return stream_.size - shift_; }  // tokens

  ScoringItem item(int64_t window) const;
  // The position in the stream of the first token that the window scores.
  int64_t first_place(int64_t window) const;

 private:
  int64_t begin(int64_t window) const { return window * (length_ - overlap_); }

  TokenStream stream_;
  int64_t length_, overlap_;
  int32_t before_;
  int64_t shift_;  // position of the first target in the stream
  int64_t windows_;
};

}  // namespace bev
