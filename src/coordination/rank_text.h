// Ranks and times as messages name them.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

namespace bev {

// A rank as messages name it.
struct RankIdentity {
  int rank = -1;
  std::string host;
  int64_t pid = 0;
};

struct Failure {
  RankIdentity who;
  std::string doing;  // its last reported activity
  std::string why;    // its own message, or how other ranks detected the failure
  // "rank 3 (host b, pid 4711) is gone: its connection closed while all_reduce of 4.2 MB with ranks
  // 1, 3, step 17"
  std::string text() const;
};

// "rank 3", "ranks 3, 5-7": three or more consecutive ranks become a range.
std::string ranks_text(std::span<const int> ranks);
// "rank 3 (host b, pid 4711)"
std::string place_text(const RankIdentity& place);
// "0.3 s", "30 s"
std::string seconds_text(std::chrono::nanoseconds time);

}  // namespace bev
