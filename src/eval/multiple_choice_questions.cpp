#include "eval/multiple_choice_questions.h"

#include "base/check.h"
#include "base/json.h"
#include "config/parse/value.h"
#include "eval/json_lines.h"
#include "eval/shortened.h"
#include "eval/task_items.h"
#include "text/white_space.h"

namespace bev {

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
