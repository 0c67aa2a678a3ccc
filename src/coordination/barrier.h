// Some ranks that come together again and again.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace bev {

class Meeting {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Arrival {
    int rank = 0;
    uint64_t request = 0;
  };

  // REQUIRES: ascending.
  explicit Meeting(std::vector<int> ranks);

  const std::vector<int>& ranks() const { return ranks_; }
  // A Comm error when it is no member or is already there.
  void arrive(int rank, uint64_t request, Time now);
  bool is_complete() const { return arrived_ == ranks_.size(); }
  // When the first came, while somebody is there.
  std::optional<Time> since() const;
  std::vector<int> missing() const;
  // All who are there go, in ascending order of their ranks.
  std::vector<Arrival> disperse();

 private:
  std::vector<int> ranks_;
  std::vector<std::optional<uint64_t>> requests_;  // by member
  size_t arrived_ = 0;
  Time since_{};
};

}  // namespace bev
