#include "coordination/barrier.h"

#include <algorithm>

#include "base/check.h"

namespace bev {

Meeting::Meeting(std::vector<int> ranks) : ranks_(std::move(ranks)), requests_(ranks_.size()) {}

void Meeting::arrive(int rank, uint64_t request, Time now) {
  const auto place = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
  BEV_CHECK(place != ranks_.end() && *place == rank, Comm,
            "rank {} comes to a meeting that it is no member of", rank);
  auto& mine = requests_[static_cast<size_t>(place - ranks_.begin())];
  BEV_CHECK(!mine, Comm, "rank {} comes twice to the same meeting", rank);
  mine = request;
  if (arrived_++ == 0) since_ = now;
}

std::optional<Meeting::Time> Meeting::since() const {
  return arrived_ > 0 ? std::optional(since_) : std::nullopt;
}

std::vector<int> Meeting::missing() const {
  std::vector<int> missing;
  for (size_t i = 0; i < ranks_.size(); ++i)
    if (!requests_[i]) missing.push_back(ranks_[i]);
  return missing;
}

std::vector<Meeting::Arrival> Meeting::disperse() {
  std::vector<Arrival> all;
  for (size_t i = 0; i < ranks_.size(); ++i)
    if (requests_[i]) all.push_back({ranks_[i], *requests_[i]});
  requests_.assign(ranks_.size(), std::nullopt);
  arrived_ = 0;
  return all;
}

}  // namespace bev
