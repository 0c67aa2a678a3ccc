// Jobs for tests: every rank a process, which can be killed and stopped.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "coordination/coordination_client.h"

namespace bev::test {

// REQUIRES: this process has no other threads.
class Processes {
 public:
  struct Limits {
    int heartbeat = 50, silence = 5000, limit = 20000;  // ms
  };
  // Speaks to the test from inside a rank.
  using Say = std::function<void(const std::string&)>;

  // Every rank runs `body`, says "rank N ended" and exits with 0. Notes are said as "rank N notes:
  // ...", errors as "rank N throws: ..." with exit code 1, failures as "rank N learns: ..." with
  // exit code 5.
  Processes(int size, const Limits& limits,
            const std::function<void(CoordinationClient& control, const Say& say)>& body);
  // Kills what is left.
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  void signal(int rank, int number) const { ::kill(pids_[static_cast<size_t>(rank)], number); }
  // Waits until some rank has said something with this in it.
  bool hear(const std::string& part, int times = 1);
  // Until all have ended; their exit codes, or 128 + the signal.
  std::vector<int> wait();
  const std::string& heard() const { return heard_; }

 private:
  void read_some(int limit_ms);

  std::vector<pid_t> pids_;
  int pipe_ = -1;
  std::string heard_;
};

}  // namespace bev::test
