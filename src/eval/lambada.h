// LAMBADA: whether a model foresees the last word of a passage.
#pragma once

#include <string>
#include <vector>

#include "infer/scorer.h"

namespace bev {

struct PassageScore {
  int64_t tokens = 0;  // that had to be foreseen
  double nats = 0;     // of those
  bool is_correct = true;
};

struct LambadaScore {
  std::vector<PassageScore> passages{};  // in the order of the file
  int64_t correct = 0, tokens = 0;
  double nats = 0;

  double accuracy() const {
    return static_cast<double>(correct) / static_cast<double>(passages.size());
  }
};

// A passage is correct when each of those tokens has the highest logit. All ranks together.
LambadaScore score_lambada(
    Scorer& scorer, const std::vector<ScoringItem>& items,
    FunctionRef<void(int64_t done)> on_done = [](int64_t) {});

// " validation results on LAMBADA | number correct: ..."
std::string megatron_line(const LambadaScore& score);

}  // namespace bev
