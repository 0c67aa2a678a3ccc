// Loss of each token of given sequences, on any ranks; batches and windows of long texts.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "infer/loaded_model.h"
#include "infer/scoring_item.h"
#include "pipeline/batch_uploader.h"
#include "pipeline/executor.h"
#include "pipeline/rank_model.h"

namespace bev {

// One batch through this rank's part of a model, for the losses of its tokens.

// How well a token was foreseen.
struct TokenScore {
  double loss = 0;            // nats
  bool is_likeliest = false;  // no other id has a higher logit
};

class ScoringPass {
 public:
  // `tokens`: of the largest batch. `sizes`: peaks() of a dry run with it. The model must outlive
  // this, and does nothing else while run() is at work.
  ScoringPass(RankModel& model, int64_t tokens, const ArenaSizes& sizes);

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
  Buffer loss_;
};

// Items that are made when they are needed; read() may be called on several threads.
struct ScoringItems {
  int64_t count = 0;
  std::function<ScoringItem(int64_t index)> read{};
};
// The same items, which must outlive what is returned, those of like length beside each other: a
// batch is as long as its longest.
struct OrderedItems {
  ScoringItems items;
  std::vector<int64_t> numbers;  // of item i, where it stands in the list that was given
};
OrderedItems ordered_by_length(const std::vector<ScoringItem>& items);

class Scorer {
 public:
  // Batches are as large as config().train says: an item has at most one id more than a sequence.
  // All ranks together; the model must outlive this. Usage error where the vocabulary is too small
  // for the tensor ranks.
  explicit Scorer(LoadedModel& model);

  // The scores of what is scored of each item, in their order; on_done hears how many items are
  // done. All ranks together with the same items; each gets all the scores.
  using Sink = FunctionRef<void(int64_t index, std::span<const TokenScore> scores)>;
  void score(
      const ScoringItems& items, Sink sink,
      FunctionRef<void(int64_t done)> on_done = [](int64_t) {});

 private:
  void fill(std::span<const ScoringItem> items);
  // The scores of all that is scored of the items, one after the other.
  std::vector<TokenScore> score_together(std::span<const ScoringItem> items);
  void share(std::vector<TokenScore>& scores, size_t count);

  LoadedModel& model_;
  int64_t sequences_, length_;
  ScoringPass pass_;
  HostBatch batch_;
  Buffer shared_;
};

// A stream of tokens cut into windows, so that each token is scored exactly once.

// Tokens by their place; REQUIRES: begin + out.size() <= size. May be read on several threads.
struct TokenStream {
  int64_t size = 0;
  std::function<void(int64_t begin, std::span<int32_t> out)> read{};
};
// REQUIRES: the ids outlive it.
TokenStream stream_of(const std::vector<int32_t>& ids);
// Some of it.
TokenStream part_of(const TokenStream& stream, int64_t begin, int64_t size);
// One behind the other.
TokenStream joined(TokenStream first, TokenStream second);

// Windows of `length` tokens; neighbours share `overlap` tokens, which the later one sees but does
// not score. The first token of all is scored from `before` (the end of another document), or, when
// that is negative, not at all.
class ScoringWindows {
 public:
  // REQUIRES: 0 <= overlap < length, at least one token can be scored.
  ScoringWindows(TokenStream stream, int64_t length, int64_t overlap, int32_t before);

  int64_t windows() const { return windows_; }
  int64_t scored() const { return stream_.size - shift_; }  // tokens

  ScoringItem item(int64_t window) const;
  // The place in the stream of the first token that the window scores.
  int64_t first_place(int64_t window) const;

 private:
  int64_t begin(int64_t window) const { return window * (length_ - overlap_); }

  TokenStream stream_;
  int64_t length_, overlap_;
  int32_t before_;
  int64_t shift_;  // of the first target, in the stream
  int64_t windows_;
};

}  // namespace bev
