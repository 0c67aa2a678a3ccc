#include "eval/task_items.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "base/format.h"
#include "text/utf8.h"

namespace bev {

ScoringItem ending_item(std::string_view context, std::string_view ending, Tokenizer& tokenizer) {
  std::vector<int32_t> context_ids;
  tokenizer.encode_begun(context, context_ids);
  ScoringItem item;
  tokenizer.encode_begun(std::string(context).append(ending), item.ids);
  const auto differs =
      std::mismatch(item.ids.begin(), item.ids.end(), context_ids.begin(), context_ids.end());
  item.first = differs.first - item.ids.begin();
  return item;
}

void for_each_json_line(std::string_view name, std::string_view text,
                        FunctionRef<void(std::string_view line, int64_t number)> f) {
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (strip(line).empty()) continue;
    try {
      f(line, number);
    } catch (const Error& error) {
      throw Error(error.kind, format("{}: line {}: {}", name, number, error.what()));
    }
  }
}

void shorten(ScoringItem& item, int64_t length) {
  BEV_CHECK(item.scored() <= length, Data, "{} tokens are to be scored, but a window has only {}",
            item.scored(), length);
  const int64_t excess = static_cast<int64_t>(item.ids.size()) - (length + 1);
  if (excess <= 0) return;
  item.ids.erase(item.ids.begin(), item.ids.begin() + excess);
  item.first -= excess;
}

}  // namespace bev
