// Who has joined a job that is not complete yet.
#pragma once

#include <string>
#include <vector>

#include "coordination/coordination_messages.h"

namespace bev {

class Roster {
 public:
  Roster(int size, std::string job);

  // Why this one is not let in; empty: it is.
  std::string objection(const HelloMessage& hello) const;
  void join(const HelloMessage& hello);
  void leave(int rank);

  bool is_complete() const { return joined_ == size(); }
  int size() const { return static_cast<int>(places_.size()); }
  // "ranks 3, 5-7 of 8"
  std::string missing_text() const;
  const std::vector<RankPlace>& places() const { return places_; }

 private:
  std::string job_;
  std::vector<RankPlace> places_;  // rank -1: not here
  int joined_ = 0;
};

}  // namespace bev
