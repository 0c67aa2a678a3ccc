#include "eval/lambada.h"

#include "base/check.h"
#include "base/format.h"
#include "data/preprocess/jsonl_reader.h"
#include "eval/task_items.h"
#include "text/utf8.h"

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

ScoringItem lambada_item(std::string_view passage, LambadaRule rule, int64_t length,
                         Tokenizer& tokenizer) {
  ScoringItem item;
  if (rule == LambadaRule::LastToken) {
    tokenizer.encode_begun(passage, item.ids);
    item.first = static_cast<int64_t>(item.ids.size()) - 1;
    BEV_CHECK(item.first >= 1, Data, "the text has {} tokens; at least 2 are needed",
              item.ids.size());
  } else {
    const std::string_view word = last_word(passage);
    const auto before = strip(passage.substr(0, passage.rfind(word)));
    BEV_CHECK(!word.empty() && !before.empty(), Data,
              "nothing stands before the last word of the text");
    item = ending_item(before, format(" {}", word), tokenizer);
    BEV_CHECK(item.first >= 1 && item.scored() >= 1, Data,
              "the tokenizer leaves nothing of the text");
  }
  shorten(item, length);
  return item;
}

std::vector<ScoringItem> read_lambada(std::string_view name, std::string_view file,
                                      LambadaRule rule, int64_t length, Tokenizer& tokenizer) {
  const std::string key = "text";
  JsonlReader reader(std::span(&key, 1));
  std::vector<ScoringItem> items;
  for_each_json_line(name, file, [&](std::string_view line, int64_t) {
    const std::string why = reader.read(line);
    BEV_CHECK(why.empty(), Data, "{}", why);
    BEV_CHECK(!reader.is_list(0), Data, "a list stands under \"text\"; a text is needed");
    items.push_back(lambada_item(reader.texts(0).front(), rule, length, tokenizer));
  });
  BEV_CHECK(!items.empty(), Data, "{}: there is no passage in the file", name);
  return items;
}

}  // namespace bev
