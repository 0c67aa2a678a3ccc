#include "eval/task_items.h"

#include <algorithm>
#include <string>

namespace bev {

ScoringItem ending_item(std::string_view context, std::string_view ending, Tokenizer& tokenizer) {
  std::vector<int32_t> alone;
  tokenizer.encode_begun(context, alone);
  ScoringItem item;
  tokenizer.encode_begun(std::string(context).append(ending), item.ids);
  const auto differs = std::mismatch(item.ids.begin(), item.ids.end(), alone.begin(), alone.end());
  item.first = differs.first - item.ids.begin();
  return item;
}

}  // namespace bev
