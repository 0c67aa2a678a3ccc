#include "coordination/rendezvous_roster.h"

#include "base/check.h"
#include "coordination/rank_text.h"

namespace bev {

Roster::Roster(int size, std::string job)
    : job_(std::move(job)), places_(static_cast<size_t>(size)) {}

std::string Roster::objection(const HelloMessage& hello) const {
  if (hello.job != job_)
    return format("it belongs to the job '{}', this one is '{}'", hello.job, job_);
  if (hello.size != size())
    return format("it says that the job has {} ranks, this one has {}", hello.size, size());
  if (hello.rank < 0 || hello.rank >= size())
    return format("there is no rank {} among {} ranks", hello.rank, size());
  const RankPlace& place = places_[static_cast<size_t>(hello.rank)];
  if (place.rank >= 0) return format("{} is already here", place_text(place));
  return "";
}

void Roster::join(const HelloMessage& hello) {
  RankPlace& place = places_.at(static_cast<size_t>(hello.rank));
  BEV_CHECK(place.rank < 0, Internal, "rank {} joins twice", hello.rank);
  place = {.rank = hello.rank, .host = hello.host, .pid = hello.pid};
  ++joined_;
}

void Roster::leave(int rank) {
  RankPlace& place = places_.at(static_cast<size_t>(rank));
  BEV_CHECK(place.rank >= 0, Internal, "rank {} leaves without being there", rank);
  place = {};
  --joined_;
}

std::string Roster::missing_text() const {
  std::vector<int> missing;
  for (int rank = 0; rank < size(); ++rank)
    if (places_[static_cast<size_t>(rank)].rank < 0) missing.push_back(rank);
  return format("{} of {}", ranks_text(missing), size());
}

}  // namespace bev
