#include "eval/lambada_passages.h"

#include "base/check.h"
#include "data/preprocess/jsonl_reader.h"
#include "eval/json_lines.h"
#include "eval/shortened.h"
#include "eval/task_items.h"
#include "text/white_space.h"

namespace bev {

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
  JsonLineReader reader(std::span(&key, 1));
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
