#include "coordination/rank_text.h"

#include "base/format.h"
#include "base/number_list.h"

namespace bev {

std::string ranks_text(std::span<const int> ranks) {
  return format("{} {}", ranks.size() == 1 ? "rank" : "ranks", ranges_text(ranks, ", ", 3));
}

std::string place_text(const RankIdentity& place) {
  return format("rank {} (host {}, pid {})", place.rank, place.host, place.pid);
}

std::string seconds_text(std::chrono::nanoseconds time) {
  const double seconds = std::chrono::duration<double>(time).count();
  return seconds < 10 ? format("{:.1f} s", seconds) : format("{:.0f} s", seconds);
}

std::string Failure::text() const {
  std::string text = format("{} is gone: {}", place_text(who), why);
  if (!doing.empty()) text += format(" while {}", doing);
  return text;
}

}  // namespace bev
