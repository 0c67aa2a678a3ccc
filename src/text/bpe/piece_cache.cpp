#include "text/bpe/piece_cache.h"

#include <algorithm>

namespace bev {

void PieceCache::put(const Key& key, std::span<const int32_t> ids) {
  Entry entry{.key = key, .ids = {}, .count = static_cast<uint32_t>(ids.size())};
  std::copy(ids.begin(), ids.end(), entry.ids.begin());
  const size_t home = home_of(key);
  // What came last is the likelier to come again: the older of the two goes.
  if (entries_[home].count > 0) entries_[home ^ 1] = entries_[home];
  entries_[home] = entry;
}

}  // namespace bev
