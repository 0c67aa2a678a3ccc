#include "eval/lambada.h"

#include "base/format.h"

namespace bev {

LambadaScore score_lambada(Scorer& scorer, const std::vector<ScoringItem>& items,
                           FunctionRef<void(int64_t done)> on_done) {
  const OrderedItems ordered = ordered_by_length(items);
  LambadaScore result{.passages = std::vector<PassageScore>(items.size())};
  scorer.score(
      ordered.items,
      [&](int64_t index, std::span<const TokenScore> scores) {
        PassageScore& passage =
            result.passages[static_cast<size_t>(ordered.numbers[static_cast<size_t>(index)])];
        passage.tokens = static_cast<int64_t>(scores.size());
        for (const TokenScore& score : scores) {
          passage.is_correct = passage.is_correct && score.is_likeliest;
          passage.nats += score.loss;
        }
      },
      on_done);
  for (const PassageScore& passage : result.passages) {
    result.tokens += passage.tokens;
    result.nats += passage.nats;
    if (passage.is_correct) ++result.correct;
  }
  return result;
}

std::string megatron_line(const LambadaScore& score) {
  return format(
      " validation results on LAMBADA | number correct: {:.4E} | total examples: {:.4E} | avg "
      "accuracy: {:.4E}",
      static_cast<double>(score.correct), static_cast<double>(score.passages.size()),
      score.accuracy());
}

}  // namespace bev
