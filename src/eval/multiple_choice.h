// Multiple choice: which of several endings a model finds the likeliest.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "infer/scorer.h"
#include "infer/scoring_item.h"
#include "text/tokenizer.h"

namespace bev {

// Questions of multiple choice, and what of them is scored.

struct ChoiceQuestion {
  std::string context{};
  std::vector<std::string> endings{};  // at least two
  size_t label = 0;                    // the right one
  int64_t line = 0;                    // of the file, from 1
};

// A line: {"ctx": "...", "endings": ["...", ...], "label": 1}, or with the names context, choices
// and gold. The label counts from 0 and may be a text. Data error when something is missing.
ChoiceQuestion parse_question(std::string_view line);
// The questions of a file. Data errors name the line.
std::vector<ChoiceQuestion> read_questions(std::string_view name, std::string_view file);

// The tokens of an ending behind those of the context (task_items.h); a space stands between,
// unless the ending begins with white space. Where no token stands before those of the ending,
// `eod` does, unless it is negative. The context that does not fit `length` tokens is left out.
ScoringItem choice_item(const ChoiceQuestion& question, size_t ending, int32_t eod, int64_t length,
                        Tokenizer& tokenizer);

// The endings of all questions. Data errors name the line.
std::vector<ScoringItem> choice_items(std::string_view name,
                                      const std::vector<ChoiceQuestion>& questions, int32_t eod,
                                      int64_t length, Tokenizer& tokenizer);

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
