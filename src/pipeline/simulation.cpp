#include "pipeline/simulation.h"

#include <algorithm>
#include <deque>

#include "base/check.h"

namespace bev {

namespace {

struct Message {
  int stage;  // that it is for
  uint32_t micro;
  double sent;
};

// What leaves a rank on one channel. Activations always go to the rank behind, gradients to the one
// before, around the ring of ranks, so the channel says where.
struct Pipe {
  int from, to;
  std::string_view channel;
  std::deque<Message> messages;
};

class Simulator {
 public:
  Simulator(std::span<const Program> programs, const PipelineShape& shape,
            const ScheduleCosts& costs)
      : programs_(programs), shape_(shape), costs_(costs) {
    BEV_CHECK(programs.size() == static_cast<size_t>(shape.ranks), Internal,
              "{} programs for {} pipeline ranks", programs.size(), shape.ranks);
    result_.ranks.resize(programs.size());
    for (int rank = 0; rank < shape.ranks; ++rank) {
      ranks_.emplace_back();
      forward_.push_back({rank, behind(rank), "forward", {}});
      backward_.push_back({rank, before(rank), "backward", {}});
      runnable_.push_back(rank);
    }
  }

  Simulation run() {
    while (!runnable_.empty()) {
      const int rank = runnable_.back();
      runnable_.pop_back();
      advance(rank);
    }
    check_all_ended();
    for (const Pipe& pipe : forward_) check_empty(pipe);
    for (const Pipe& pipe : backward_) check_empty(pipe);
    for (const RankState& state : ranks_) result_.end = std::max(result_.end, state.clock);
    return std::move(result_);
  }

 private:
  struct RankState {
    size_t next = 0;  // instruction
    double clock = 0;
    const Pipe* waits_for = nullptr;
  };

  int behind(int rank) const { return (rank + 1) % shape_.ranks; }
  int before(int rank) const { return (rank + shape_.ranks - 1) % shape_.ranks; }
  RankState& state(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  const Program& program(int rank) const { return programs_[static_cast<size_t>(rank)]; }

  // Runs a rank until it ends or has to wait.
  void advance(int rank) {
    RankState& s = state(rank);
    s.waits_for = nullptr;
    for (; s.next < program(rank).size(); ++s.next) {
      const Instr& instr = program(rank)[s.next];
      const int stage = shape_.stage(rank, instr.chunk);
      switch (instr.act) {
        case Act::SendForward: send(forward_, rank, stage + 1, instr.micro); break;
        case Act::SendBackward: send(backward_, rank, stage - 1, instr.micro); break;
        case Act::RecvForward:
          if (!receive(forward_[static_cast<size_t>(before(rank))], rank)) return;
          break;
        case Act::RecvBackward:
          if (!receive(backward_[static_cast<size_t>(behind(rank))], rank)) return;
          break;
        case Act::Load: break;
        case Act::Forward:
        case Act::Backward:
        case Act::BackwardInput:
        case Act::BackwardWeight: {
          const double begin = s.clock;
          s.clock += costs_.of(instr.act);
          result_.ranks[static_cast<size_t>(rank)].push_back({instr, begin, s.clock});
        }
      }
    }
  }

  void send(std::vector<Pipe>& pipes, int rank, int stage, uint32_t micro) {
    Pipe& pipe = pipes[static_cast<size_t>(rank)];
    pipe.messages.push_back({stage, micro, state(rank).clock});
    RankState& receiver = state(pipe.to);
    if (receiver.waits_for == &pipe) {
      receiver.waits_for = nullptr;
      runnable_.push_back(pipe.to);
    }
  }

  bool receive(Pipe& pipe, int rank) {
    RankState& s = state(rank);
    if (pipe.messages.empty()) {
      s.waits_for = &pipe;
      return false;
    }
    const Message message = pipe.messages.front();
    pipe.messages.pop_front();
    const Instr& instr = program(rank)[s.next];
    const int stage = shape_.stage(rank, instr.chunk);
    BEV_CHECK(message.stage == stage && message.micro == instr.micro, Internal,
              "{}: out of order, the {} channel from rank {} delivers micro-batch {} for stage {} "
              "to stage {}",
              place_of(rank, s.next, instr), pipe.channel, pipe.from, message.micro, message.stage,
              stage);
    s.clock = std::max(s.clock, message.sent);
    return true;
  }

  void check_all_ended() const {
    std::string blocked;
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      const RankState& s = ranks_[static_cast<size_t>(rank)];
      if (s.waits_for == nullptr) continue;
      blocked += format("\n  {} waits for rank {} on the {} channel",
                        place_of(rank, s.next, program(rank)[s.next]), s.waits_for->from,
                        s.waits_for->channel);
    }
    BEV_CHECK(blocked.empty(), Internal, "the pipeline's schedule blocks for ever:{}", blocked);
  }

  static void check_empty(const Pipe& pipe) {
    BEV_CHECK(pipe.messages.empty(), Internal,
              "micro-batch {} for stage {} is left in the {} channel from rank {}: rank {} never "
              "receives it",
              pipe.messages.front().micro, pipe.messages.front().stage, pipe.channel, pipe.from,
              pipe.to);
  }

  std::span<const Program> programs_;
  PipelineShape shape_;
  ScheduleCosts costs_;
  std::vector<RankState> ranks_;
  std::vector<Pipe> forward_, backward_;  // by the rank they leave
  std::vector<int> runnable_;
  Simulation result_;
};

}  // namespace

double ScheduleCosts::of(Act act) const {
  switch (act) {
    case Act::Forward: return forward;
    case Act::Backward: return backward_input + backward_weight;
    case Act::BackwardInput: return backward_input;
    case Act::BackwardWeight: return backward_weight;
    default: return 0;
  }
}

double Simulation::bubble() const {
  double useful = 0;
  for (const std::vector<TimedInstr>& rank : ranks) {
    for (const TimedInstr& timed : rank) useful += timed.end - timed.begin;
  }
  return useful > 0 ? end * static_cast<double>(ranks.size()) / useful - 1 : 0;
}

Simulation simulate(std::span<const Program> programs, const PipelineShape& shape,
                    const ScheduleCosts& costs) {
  return Simulator(programs, shape, costs).run();
}

}  // namespace bev
