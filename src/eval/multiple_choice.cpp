#include "eval/multiple_choice.h"

#include <algorithm>

#include "base/check.h"
#include "base/json.h"
#include "config/parse/notation.h"
#include "eval/task_items.h"
#include "text/utf8.h"

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

namespace {

// What stands under the one or the other name.
const Json& member(const Json& object, const char* name, const char* other) {
  for (const char* each : {name, other}) {
    const auto found = object.find(each);
    if (found != object.end()) return *found;
  }
  throw Error(ErrorKind::Data,
              format("there is neither {} nor {}", in_quotes(name), in_quotes(other)));
}

int64_t label_of(const Json& value) {
  if (value.is_number_integer()) return value.get<int64_t>();
  const auto number =
      value.is_string() ? parse_integer(value.get_ref<const std::string&>()) : std::nullopt;
  BEV_CHECK(number, Data, "the label is {}; the number of the right ending is needed",
            value.dump().substr(0, 40));
  return *number;
}

}  // namespace

ChoiceQuestion parse_question(std::string_view line) {
  const Json object = parse_json(line, "the question");
  BEV_CHECK(object.is_object(), Data, "an object is needed");
  const Json& context = member(object, "ctx", "context");
  const Json& endings = member(object, "endings", "choices");
  BEV_CHECK(context.is_string(), Data, "the context is not a text");
  BEV_CHECK(endings.is_array() && endings.size() >= 2, Data,
            "the endings are not a list of two or more");
  ChoiceQuestion question{.context = context.get<std::string>()};
  for (const Json& ending : endings) {
    BEV_CHECK(ending.is_string() && !strip(ending.get_ref<const std::string&>()).empty(), Data,
              "ending {} is not a text, or has nothing in it", question.endings.size());
    question.endings.push_back(ending.get<std::string>());
  }
  const int64_t label = label_of(member(object, "label", "gold"));
  BEV_CHECK(label >= 0 && label < static_cast<int64_t>(endings.size()), Data,
            "the label is {}, but the endings are numbered from 0 to {}", label,
            endings.size() - 1);
  question.label = static_cast<size_t>(label);
  return question;
}

std::vector<ChoiceQuestion> read_questions(std::string_view name, std::string_view file) {
  std::vector<ChoiceQuestion> questions;
  for_each_json_line(name, file, [&](std::string_view line, int64_t number) {
    questions.push_back(parse_question(line));
    questions.back().line = number;
  });
  BEV_CHECK(!questions.empty(), Data, "{}: there is no question in the file", name);
  return questions;
}

ScoringItem choice_item(const ChoiceQuestion& question, size_t ending, int32_t eod, int64_t length,
                        Tokenizer& tokenizer) {
  const std::string& text = question.endings[ending];
  ScoringItem item =
      ending_item(strip(question.context), white_space_at(text) > 0 ? text : " " + text, tokenizer);
  BEV_CHECK(item.scored() >= 1, Data, "there are no tokens in an ending");
  if (item.first == 0 && eod >= 0) {
    item.ids.insert(item.ids.begin(), eod);
    item.first = 1;
  }
  BEV_CHECK(item.first >= 1, Data,
            "no token stands before an ending, and the model does not say how a document begins");
  shorten(item, length);
  return item;
}

std::vector<ScoringItem> choice_items(std::string_view name,
                                      const std::vector<ChoiceQuestion>& questions, int32_t eod,
                                      int64_t length, Tokenizer& tokenizer) {
  std::vector<ScoringItem> items;
  for (const ChoiceQuestion& question : questions) {
    try {
      for (size_t ending = 0; ending < question.endings.size(); ++ending)
        items.push_back(choice_item(question, ending, eod, length, tokenizer));
    } catch (const Error& error) {
      throw Error(error.kind, format("{}: line {}: {}", name, question.line, error.what()));
    }
  }
  return items;
}

}  // namespace bev
