// How well a model foresees a text.
#pragma once

#include <vector>

#include "eval/eval_text.h"
#include "infer/scorer.h"

namespace bev {

struct PerplexityRule {
  int64_t length = 0, overlap = 0;  // of windows (infer/scoring_windows.h)
  int32_t before = -1;              // what the first token is scored from; negative: it is not
  bool separate = false;            // documents by themselves: none sees another
};
// Of the whole: how each token was scored, a sentence.
std::string rule_in_words(const PerplexityRule& rule);

struct DocumentScore {
  int64_t tokens = 0;  // scored
  double nats = 0;
};

struct TextScore {
  int64_t tokens = 0;  // scored
  double nats = 0;
  std::vector<DocumentScore> documents{};  // as those of the text
};

// The windows of a text in the order in which they are scored.
class PerplexityWindows {
 public:
  // The text must outlive this. Data error when no token can be scored.
  PerplexityWindows(const EvalText& text, const PerplexityRule& rule);

  ScoringItems items() const;
  int64_t count() const { return first_.back(); }
  int64_t first_place(int64_t index) const;

 private:
  struct Place {
    size_t part;
    int64_t window;
  };
  Place place(int64_t index) const;

  std::vector<ScoringWindows> parts_;
  std::vector<int64_t> begins_;  // of each part, in the stream
  std::vector<int64_t> first_;   // window of each part, and the number of all
};

// All ranks together.
TextScore score_text(
    Scorer& scorer, const EvalText& text, const PerplexityWindows& windows,
    FunctionRef<void(int64_t done)> on_done = [](int64_t) {});

}  // namespace bev
