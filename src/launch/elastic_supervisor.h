// A job whose number of machines may change from attempt to attempt.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "launch/launch_job.h"
#include "launch/supervisor.h"

namespace bev {

// How many of the present machines form a job, and what that job can do.
struct NodeChoice {
  int nodes = 0;             // how many machines take part; 0: no number of them can
  int data_ranks = 0;        // ranks that share each batch then; 0: nobody knows
  std::string why{};         // none can: the words of the program
  ProgressWatch progress{};  // of what they do
};

struct ElasticJob {
  int least = 1, most = 1;  // machines
  int number = 0;           // of this one, as --node-rank has it; 0 is the first
  std::chrono::milliseconds last_call{30'000}, join_timeout{600'000};
  // Of machines with so many processes each, in this order, the first that can take part: as many
  // as possible. Asked by the first machine.
  std::function<NodeChoice(const std::vector<int>& processes)> choose{};
};

// Does what supervise() does for the ranks of this machine, in attempts that the first machine's
// launcher calls: beside the port of the ranks, at master_port + 1, launchers that know the secret
// of the job meet there. It waits for machines (RendezvousWait), starts the ranks of as many as can
// take part, those of the lowest numbers, and decides after a failure what happens next
// (RestartPolicy). Others wait for the next attempt, and so does a machine that comes later. A
// machine that is gone fails its attempt only; the first machine's end is the end of the job.
//
// Place and number of ranks in `job` do not count; node, first_rank and size are set for each
// attempt. REQUIRES: as supervise().
int supervise_elastic(const LaunchJob& job, const ElasticJob& elastic, const LaunchNote& note);

// How long machines are waited for before an attempt.

class RendezvousWait {
 public:
  struct Limits {
    int least = 1, most = 1;
    double last_call = 30;  // seconds for others, once the least are there
    double join = 600;      // seconds for the least
  };
  enum class Verdict : uint8_t { Wait, Go, TooFew };

  RendezvousWait(const Limits& limits, double now) : limits_(limits), started_(now) {}

  // As often as one likes. Go: as many are there as can take part, or the last call is over.
  Verdict judge(int present, double now);
  // Those who are there cannot do it: others are waited for.
  void refuse(int present) { refused_ = present; }
  // Whether the last call has begun.
  bool is_last_call() const { return called_ >= 0; }

 private:
  Limits limits_;
  double started_;
  double called_ = -1;  // when the last call began; -1: it has not
  int refused_ = 0;
};

}  // namespace bev
