// LAMBADA: whether a model foresees the last word of a passage.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "infer/scorer.h"
#include "infer/scoring_item.h"
#include "text/tokenizer.h"

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

// The passages of LAMBADA, and what of them a model must foresee.

// Strict: the last word, whole, behind the text before it. Else: the last token of the text.
enum class LambadaRule : uint8_t { LastToken, LastWord };

// Of a passage, the ids and where those begin that must be foreseen. The text in front that does
// not fit `length` tokens is left out. Data error when nothing stands before them.
ScoringItem lambada_item(std::string_view passage, LambadaRule rule, int64_t length,
                         Tokenizer& tokenizer);

// The passages of a file: the text under "text" in each line. Data errors name the line.
std::vector<ScoringItem> read_lambada(std::string_view name, std::string_view file,
                                      LambadaRule rule, int64_t length, Tokenizer& tokenizer);

}  // namespace bev
