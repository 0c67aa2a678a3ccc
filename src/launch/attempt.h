// One start of all ranks of a machine, until all have ended.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "launch/poll_source.h"
#include "launch/signal_queue.h"
#include "launch/supervised_ranks.h"

namespace bev {

using LaunchNote = std::function<void(const std::string&)>;

// How the ranks of a machine ended.
struct AttemptEnd {
  int code = 0;      // 0, or that of the rank that failed first, 128 + N where signal N killed it
  int asked_by = 0;  // the signal to the launcher that people ended it with; 0: none
  bool by_people = false;  // a signal killed a rank that people send and the system does not
  double seconds = 0;
  std::string words{};   // "rank 1: killed by signal 9 (SIGKILL)"; empty: none failed by itself
  std::string report{};  // the same with what it said last and how the others ended, some lines
};

class Attempt {
 public:
  // Starts the ranks. `job`, `signals` and `side`, which may be absent, outlive this.
  Attempt(const LaunchJob& job, int number, SignalQueue& signals, LaunchNote note,
          SideWork* side = nullptr);

  AttemptEnd run();

 private:
  AttemptEnd end() const;
  std::string words_of(size_t rank) const;
  std::string report_of(size_t culprit) const;
  std::string others(size_t culprit) const;
  int next_wait() const;
  void take_signals();
  void look_aside();
  void end_when_due();

  enum class Stage : uint8_t { Waiting, Asked, Killed };

  const LaunchJob& job_;
  SignalQueue& signals_;
  LaunchNote note_;
  SideWork* side_;
  SupervisedRanks ranks_;
  Stage stage_ = Stage::Waiting;
  std::optional<double> due_;
  std::string end_wanted_;  // why, where it is not a rank of this machine that failed
  int asked_by_ = 0;
  double started_, asked_at_ = 0;
};

}  // namespace bev
