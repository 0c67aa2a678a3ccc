#include "eval/shortened.h"

#include "base/check.h"

namespace bev {

void shorten(ScoringItem& item, int64_t length) {
  BEV_CHECK(item.scored() <= length, Data, "{} tokens are to be scored, but a window has only {}",
            item.scored(), length);
  const int64_t excess = static_cast<int64_t>(item.ids.size()) - (length + 1);
  if (excess <= 0) return;
  item.ids.erase(item.ids.begin(), item.ids.begin() + excess);
  item.first -= excess;
}

}  // namespace bev
