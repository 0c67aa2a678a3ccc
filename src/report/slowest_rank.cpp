#include "report/slowest_rank.h"

#include "base/format.h"

namespace bev {

void SlowestRank::add(std::span<const RankTimes> latest) {
  ranks_.resize(latest.size());
  for (size_t rank = 0; rank < latest.size(); ++rank) {
    Sum& sum = ranks_[rank];
    if (latest[rank].step <= sum.step) continue;
    sum.step = latest[rank].step;
    sum.compute += latest[rank].compute;
    ++sum.count;
  }
}

std::string SlowestRank::take_text() {
  double total = 0, longest = 0;
  size_t slowest = 0, reported = 0;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    Sum& sum = ranks_[rank];
    if (sum.count == 0) continue;
    const double mean = sum.compute / static_cast<double>(sum.count);
    total += mean;
    ++reported;
    if (mean > longest) {
      longest = mean;
      slowest = rank;
    }
    sum.compute = 0;
    sum.count = 0;
  }
  if (reported < 2 || total <= 0) return {};
  return format("{} (+{:.1f} %)", slowest,
                100 * (longest * static_cast<double>(reported) / total - 1));
}

}  // namespace bev
