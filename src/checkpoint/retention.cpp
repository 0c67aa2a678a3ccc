#include "checkpoint/retention.h"

#include <algorithm>
#include <cmath>

namespace bev {

namespace {

// Places in the list of those with the lowest validation loss, at most `most`.
std::vector<size_t> best(std::span<const KeptCheckpoint> checkpoints, int64_t most) {
  std::vector<size_t> places;
  for (size_t i = checkpoints.size(); i-- > 0;)
    if (checkpoints[i].valid_loss && !std::isnan(*checkpoints[i].valid_loss)) places.push_back(i);
  // Stable: of equal ones the newer comes first.
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) {
    return *checkpoints[a].valid_loss < *checkpoints[b].valid_loss;
  });
  places.resize(std::min(places.size(), static_cast<size_t>(most)));
  return places;
}

}  // namespace

bool removes(const CheckpointConfig& config) { return config.keep > 0 || config.keep_every > 0; }

std::vector<int64_t> removable(std::span<const KeptCheckpoint> checkpoints,
                               const CheckpointConfig& config) {
  if (!removes(config)) return {};
  const auto keep = static_cast<size_t>(std::max<int64_t>(1, config.keep));
  const size_t newest = std::min(checkpoints.size(), keep);
  const std::vector<size_t> good = best(checkpoints, config.keep_best);
  std::vector<int64_t> iterations;
  for (size_t i = 0; i < checkpoints.size() - newest; ++i) {
    const KeptCheckpoint& it = checkpoints[i];
    const bool is_multiple = config.keep_every > 0 && it.iteration % config.keep_every == 0;
    const bool is_good = std::find(good.begin(), good.end(), i) != good.end();
    if (!it.is_permanent && !is_multiple && !is_good) iterations.push_back(it.iteration);
  }
  return iterations;
}

}  // namespace bev
