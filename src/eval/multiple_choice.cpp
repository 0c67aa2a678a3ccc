#include "eval/multiple_choice.h"

#include <algorithm>

#include "text/white_space.h"

namespace bev {

double EndingScore::loss(ChoiceBy by) const {
  switch (by) {
    case ChoiceBy::PerByte: return nats / static_cast<double>(bytes);
    case ChoiceBy::PerToken: return nats / static_cast<double>(tokens);
    case ChoiceBy::Sum: break;
  }
  return nats;
}

size_t QuestionScore::chosen(ChoiceBy by) const {
  const auto least = std::min_element(
      endings.begin(), endings.end(),
      [by](const EndingScore& a, const EndingScore& b) { return a.loss(by) < b.loss(by); });
  return static_cast<size_t>(least - endings.begin());
}

double ChoiceScore::accuracy(ChoiceBy by) const {
  const auto right =
      std::count_if(questions.begin(), questions.end(),
                    [by](const QuestionScore& q) { return q.chosen(by) == q.label; });
  return static_cast<double>(right) / static_cast<double>(questions.size());
}

ChoiceScore score_choices(Scorer& scorer, const std::vector<ChoiceQuestion>& questions,
                          const std::vector<ScoringItem>& items,
                          FunctionRef<void(int64_t done)> on_done) {
  const OrderedItems ordered = ordered_by_length(items);
  std::vector<EndingScore> endings(items.size());
  scorer.score(
      ordered.items,
      [&](int64_t index, std::span<const TokenScore> scores) {
        EndingScore& ending =
            endings[static_cast<size_t>(ordered.numbers[static_cast<size_t>(index)])];
        ending.tokens = static_cast<int64_t>(scores.size());
        for (const TokenScore& score : scores) ending.nats += score.loss;
      },
      on_done);
  ChoiceScore result;
  auto next = endings.begin();
  for (const ChoiceQuestion& question : questions) {
    QuestionScore score{.label = question.label};
    for (const std::string& text : question.endings) {
      next->bytes = static_cast<int64_t>(strip(text).size());
      result.tokens += next->tokens;
      score.endings.push_back(*next++);
    }
    result.questions.push_back(std::move(score));
  }
  return result;
}

}  // namespace bev
