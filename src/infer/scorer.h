// The loss of each token of given sequences, whatever ranks the model lies on. A number does not
// depend on what is computed beside it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "infer/loaded_model.h"
#include "infer/scoring_item.h"
#include "infer/scoring_pass.h"

namespace bev {

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

}  // namespace bev
