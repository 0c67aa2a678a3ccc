#include "checkpoint/retention.h"

#include <algorithm>
#include <set>

namespace bev {

std::vector<int64_t> removable(std::span<const KnownCheckpoint> checkpoints,
                               const CheckpointConfig& config) {
  std::vector<KnownCheckpoint> all(checkpoints.begin(), checkpoints.end());
  std::sort(all.begin(), all.end(), [](const KnownCheckpoint& a, const KnownCheckpoint& b) {
    return a.iteration > b.iteration;
  });
  if (config.keep <= 0) return {};
  std::set<int64_t> going;
  for (size_t i = static_cast<size_t>(config.keep); i < all.size(); ++i) {
    const bool is_multiple = config.keep_every > 0 && all[i].iteration % config.keep_every == 0;
    if (!all[i].is_permanent && !is_multiple) going.insert(all[i].iteration);
  }
  std::erase_if(all, [](const KnownCheckpoint& c) { return !c.valid_loss; });
  std::stable_sort(all.begin(), all.end(), [](const KnownCheckpoint& a, const KnownCheckpoint& b) {
    return *a.valid_loss < *b.valid_loss;
  });
  for (size_t i = 0; i < std::min(all.size(), static_cast<size_t>(config.keep_best)); ++i)
    going.erase(all[i].iteration);
  return {going.begin(), going.end()};
}

}  // namespace bev
