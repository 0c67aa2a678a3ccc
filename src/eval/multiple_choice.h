// Multiple choice: which of several endings a model finds the likeliest.
#pragma once

#include <vector>

#include "eval/multiple_choice_questions.h"
#include "infer/scorer.h"

namespace bev {

// How the endings are compared.
enum class ChoiceBy : uint8_t { Sum, PerByte, PerToken };
inline constexpr size_t kChoiceRules = 3;

struct EndingScore {
  double nats = 0;
  int64_t tokens = 0, bytes = 0;

  double loss(ChoiceBy by) const;
};

struct QuestionScore {
  size_t label = 0;
  std::vector<EndingScore> endings{};

  // The ending with the smallest loss; of equal ones the first.
  size_t chosen(ChoiceBy by) const;
};

struct ChoiceScore {
  std::vector<QuestionScore> questions{};
  int64_t tokens = 0;  // of all endings

  double accuracy(ChoiceBy by) const;
};

// All ranks together.
ChoiceScore score_choices(
    Scorer& scorer, const std::vector<ChoiceQuestion>& questions,
    const std::vector<ScoringItem>& items,
    FunctionRef<void(int64_t done)> on_done = [](int64_t) {});

}  // namespace bev
