#include "pipeline/schedule_simulation.h"

#include <algorithm>
#include <deque>
#include <map>

#include "base/check.h"

namespace bev {

namespace {

struct Pipe;

// Memory from which a slot sends: its output, or the gradient of its input. A message
// stays there until it is received.
struct Outbox {
  const Pipe* sending = nullptr;  // the message in flight
  double received = 0;            // when the last one was
};

struct Message {
  int stage;  // that it is for
  uint32_t micro;
  double arrives;
  Outbox* from;
};

// Messages that leave a rank on one channel. Activations always go to the next rank, gradients to
// the previous one, around the ring of ranks: the channel determines the receiver.
struct Pipe {
  int from, to;
  std::string_view channel;
  std::deque<Message> messages{};
  double free = 0;  // when the last message has arrived
};

class Simulator {
 public:
  Simulator(std::span<const Program> programs, const PipelineShape& shape,
            std::span<const StageCosts> stages)
      : programs_(programs), shape_(shape), stages_(stages.begin(), stages.end()) {
    BEV_CHECK(programs.size() == static_cast<size_t>(shape.ranks), Internal,
              "{} programs for {} pipeline ranks", programs.size(), shape.ranks);
    const auto count = static_cast<size_t>(shape.last_stage()) + 1;
    if (stages.empty()) stages_.resize(count);
    BEV_CHECK(stages_.size() == count, Internal, "costs of {} stages for {} stages", stages_.size(),
              count);
    result_.ranks.resize(programs.size());
    for (int rank = 0; rank < shape.ranks; ++rank) {
      ranks_.emplace_back();
      forward_.push_back({rank, behind(rank), "forward"});
      backward_.push_back({rank, before(rank), "backward"});
      runnable_.push_back(rank);
    }
  }

  SimulatedSchedule run() {
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
  struct Slot {
    Outbox output, dinput;
  };
  struct RankState {
    size_t next = 0;  // instruction
    double clock = 0;
    std::map<std::pair<uint16_t, uint16_t>, Slot> slots{};  // by chunk and number
    // At most one is set: the rank waits for a message, or until its own message is received.
    const Pipe* waits_for = nullptr;
    const Outbox* waits_to_reuse = nullptr;
  };

  int behind(int rank) const { return (rank + 1) % shape_.ranks; }
  int before(int rank) const { return (rank + shape_.ranks - 1) % shape_.ranks; }
  RankState& state(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  const StageCosts& costs(int stage) const { return stages_[static_cast<size_t>(stage)]; }
  const Program& program(int rank) const { return programs_[static_cast<size_t>(rank)]; }

  // Runs a rank until it ends or has to wait.
  void advance(int rank) {
    RankState& s = state(rank);
    for (; s.next < program(rank).size(); ++s.next) {
      const Instr& instr = program(rank)[s.next];
      const int stage = shape_.stage(rank, instr.chunk);
      switch (instr.act) {
        case Act::SendForward:
          send(forward_, rank, stage + 1, slot_of(rank, instr).output, costs(stage).send_forward);
          break;
        case Act::SendBackward:
          send(backward_, rank, stage - 1, slot_of(rank, instr).dinput, costs(stage).send_backward);
          break;
        case Act::RecvForward:
          if (shape_.gradient_replaces_input && !reuse(slot_of(rank, instr).dinput, rank)) return;
          if (!receive(forward_[static_cast<size_t>(before(rank))], rank)) return;
          break;
        case Act::RecvBackward:
          if (!receive(backward_[static_cast<size_t>(behind(rank))], rank)) return;
          break;
        case Act::Load:
          if (!reuse(slot_of(rank, instr).output, rank)) return;
          break;
        case Act::Backward:
        case Act::BackwardInput:
          if (!reuse(slot_of(rank, instr).dinput, rank)) return;
          compute(rank, instr);
          break;
        case Act::Forward:
        case Act::BackwardWeight: compute(rank, instr); break;
      }
    }
  }

  void compute(int rank, const Instr& instr) {
    double& clock = state(rank).clock;
    const double begin = clock;
    clock += costs(shape_.stage(rank, instr.chunk)).of(instr.act);
    result_.ranks[static_cast<size_t>(rank)].push_back({instr, begin, clock});
  }

  Slot& slot_of(int rank, const Instr& instr) {
    return state(rank).slots[{instr.chunk, instr.slot}];
  }

  bool reuse(const Outbox& outbox, int rank) {
    RankState& s = state(rank);
    if (outbox.sending != nullptr) {
      s.waits_to_reuse = &outbox;
      return false;
    }
    s.clock = std::max(s.clock, outbox.received);
    return true;
  }

  void send(std::vector<Pipe>& pipes, int rank, int stage, Outbox& outbox, double time) {
    Pipe& pipe = pipes[static_cast<size_t>(rank)];
    RankState& s = state(rank);
    const Instr& instr = program(rank)[s.next];
    BEV_CHECK(outbox.sending == nullptr, Internal,
              "{}: the previous message of the slot is still in flight",
              place_of(rank, s.next, instr));
    outbox.sending = &pipe;
    pipe.free = std::max(pipe.free, s.clock) + time;
    pipe.messages.push_back({stage, instr.micro, pipe.free, &outbox});
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
    s.clock = std::max(s.clock, message.arrives);
    free(*message.from, pipe, s.clock);
    return true;
  }

  void free(Outbox& outbox, const Pipe& pipe, double when) {
    outbox = {.sending = nullptr, .received = when};
    RankState& sender = state(pipe.from);
    if (sender.waits_to_reuse == &outbox) {
      sender.waits_to_reuse = nullptr;
      runnable_.push_back(pipe.from);
    }
  }

  void check_all_ended() const {
    std::string blocked;
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      const RankState& s = ranks_[static_cast<size_t>(rank)];
      if (s.waits_for != nullptr) {
        blocked += format("\n  {} waits for rank {} on the {} channel",
                          place_of(rank, s.next, program(rank)[s.next]), s.waits_for->from,
                          s.waits_for->channel);
      } else if (s.waits_to_reuse != nullptr) {
        const Pipe& unread = *s.waits_to_reuse->sending;
        blocked +=
            format("\n  {} waits until rank {} takes what the slot has sent on the {} channel",
                   place_of(rank, s.next, program(rank)[s.next]), unread.to, unread.channel);
      }
    }
    BEV_CHECK(blocked.empty(), Internal, "the pipeline schedule deadlocks:{}", blocked);
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
  std::vector<StageCosts> stages_;
  std::vector<RankState> ranks_;
  std::vector<Pipe> forward_, backward_;  // by the rank they leave
  std::vector<int> runnable_;
  SimulatedSchedule result_;
};

}  // namespace

double StageCosts::of(Act act) const {
  switch (act) {
    case Act::Forward: return forward;
    case Act::Backward: return backward_input + backward_weight;
    case Act::BackwardInput: return backward_input;
    case Act::BackwardWeight: return backward_weight;
    default: return 0;
  }
}

double SimulatedSchedule::bubble() const {
  double useful = 0;
  for (const std::vector<TimedInstr>& rank : ranks) {
    for (const TimedInstr& timed : rank) useful += timed.end - timed.begin;
  }
  return useful > 0 ? end * static_cast<double>(ranks.size()) / useful - 1 : 0;
}

SimulatedSchedule simulate(std::span<const Program> programs, const PipelineShape& shape,
                           std::span<const StageCosts> stages) {
  return Simulator(programs, shape, stages).run();
}

}  // namespace bev
