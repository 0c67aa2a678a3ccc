// Where the launchers of an elastic job meet before each attempt: the first machine waits until as
// many machines as can take part are there, or the least and the last call is over.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launch/launch_job.h"
#include "launch/node_server.h"
#include "launch/supervisor.h"

namespace bev {

// How many of the present machines form a job, and what that job can do.
struct NodeChoice {
  int nodes = 0;             // how many machines take part; 0: no number of them can
  int data_ranks = 0;        // ranks that share each batch then; 0: unknown
  std::string why{};         // why not, if none can: the program's message
  ProgressWatch progress{};  // of the job
};

struct ElasticJob {
  int least = 1, most = 1;  // machines
  int number = 0;           // of this one, as --node-rank has it; 0 is the first
  std::chrono::milliseconds last_call{30'000}, join_timeout{600'000};
  // Of machines with these numbers of processes, in this order, the first that can take part: as
  // many as possible. Asked by the first machine.
  std::function<NodeChoice(const std::vector<int>& processes)> choose{};
};

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

  // Any number of times. Go: as many are there as can take part, or the last call is over.
  Verdict judge(int present, double now);
  // The present machines cannot run the job: waits for others.
  void refuse(int present) { refused_ = present; }
  // Whether the last call has begun.
  bool is_last_call() const { return called_ >= 0; }

 private:
  Limits limits_;
  double started_;
  double called_ = -1;  // when the last call began; -1: it has not
  int refused_ = 0;
};

// The meeting at the first machine.
class ElasticRendezvous {
 public:
  // All of them must outlive this.
  ElasticRendezvous(const LaunchJob& job, const ElasticJob& elastic, NodeServer& server,
                    const LaunchNote& note)
      : job_(job), elastic_(elastic), server_(server), note_(note) {}

  // Waits for machines until an attempt has enough. Something: the job is over.
  std::optional<NodeJobEnd> gather(int attempt, SignalQueue& signals);
  // After gather(): who takes part besides the first machine, by number; ranks of all machines.
  const std::map<int, NodeAssignment>& places() const { return places_; }
  int ranks() const { return ranks_; }
  const ProgressWatch& progress() const { return progress_; }

  // Prints lines at all machines that are here.
  void notify(const std::string& text);
  // "2 of 4 machines are here"
  std::string here_text(int present) const;

 private:
  std::string count_text(int machines) const;
  // Whether some of them can run the job; then sets who takes part and prints it.
  bool choose(const std::vector<NodeHello>& others, int attempt);
  std::string start_words(const std::vector<NodeHello>& others, size_t count, int data_ranks,
                          int attempt) const;

  const LaunchJob& job_;
  const ElasticJob& elastic_;
  NodeServer& server_;
  const LaunchNote& note_;
  std::map<int, NodeAssignment> places_;
  ProgressWatch progress_{};
  int ranks_ = 0, data_ranks_ = 0;  // of the last attempt
  std::string refusal_;
};

// The end of a job by a signal at the first machine.
NodeJobEnd ended_by_signal(int signal);

}  // namespace bev
