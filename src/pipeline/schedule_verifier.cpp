#include "pipeline/schedule_verifier.h"

#include <initializer_list>

#include "base/check.h"

namespace bev {

namespace {

// Instructions for a micro-batch in a chunk: those done, or those required.
class ActSet {
 public:
  ActSet() = default;
  ActSet(std::initializer_list<Act> acts) {
    for (const Act act : acts) add(act);
  }

  void add(Act act) { bits_ |= 1U << static_cast<unsigned>(act); }
  void add(ActSet other) { bits_ |= other.bits_; }
  ActSet also_in(ActSet other) const { return ActSet(bits_ & other.bits_); }
  ActSet without(ActSet other) const { return ActSet(bits_ & ~other.bits_); }
  bool empty() const { return bits_ == 0; }

  std::string names() const {
    std::string text;
    for (unsigned act = 0; act <= static_cast<unsigned>(Act::SendBackward); ++act) {
      if ((bits_ >> act & 1U) == 0) continue;
      text += text.empty() ? "" : ", ";
      text += name_of(static_cast<Act>(act));
    }
    return text;
  }

 private:
  explicit ActSet(unsigned bits) : bits_(bits) {}
  unsigned bits_ = 0;
};

// A whole backward is both of its halves.
ActSet done_by(Act act) {
  if (act == Act::Backward) return {Act::BackwardInput, Act::BackwardWeight};
  return {act};
}

// Instructions that must precede this one, if the stage has them at all.
ActSet needed_by(Act act) {
  switch (act) {
    case Act::Load: return {};
    case Act::RecvForward: return {Act::Load};
    case Act::Forward: return {Act::Load, Act::RecvForward};
    case Act::SendForward: return {Act::Forward};
    case Act::RecvBackward: return {Act::Forward, Act::SendForward};
    case Act::Backward:
    case Act::BackwardInput: return {Act::Forward, Act::SendForward, Act::RecvBackward};
    case Act::BackwardWeight:
    case Act::SendBackward: return {Act::BackwardInput};
  }
  throw Error(ErrorKind::Internal, "unknown instruction");
}

// Checks the program of one rank, independent of the others.
class RankCheck {
 public:
  RankCheck(const PipelineShape& shape, int rank, bool backward)
      : shape_(shape), rank_(rank), chunks_(static_cast<size_t>(shape.chunks)) {
    for (int c = 0; c < shape.chunks; ++c) {
      Chunk& chunk = chunks_[static_cast<size_t>(c)];
      chunk.stage = shape.stage(rank, c);
      chunk.todo = todo(chunk.stage, backward);
      chunk.done.resize(static_cast<size_t>(shape.micros));
    }
  }

  void follow(const Program& program) {
    for (size_t i = 0; i < program.size(); ++i) follow(i, program[i]);
    for (size_t c = 0; c < chunks_.size(); ++c) {
      for (size_t micro = 0; micro < chunks_[c].done.size(); ++micro) {
        const ActSet missing = chunks_[c].todo.without(chunks_[c].done[micro]);
        BEV_CHECK(missing.empty(), Internal, "rank {}: micro-batch {} of chunk {} has no {}", rank_,
                  micro, c, missing.names());
      }
    }
  }

 private:
  static constexpr int64_t kFree = -1;
  struct Chunk {
    int stage = 0;
    ActSet todo;                 // for every micro-batch
    std::vector<ActSet> done;    // by micro-batch
    std::vector<int64_t> slots;  // the micro-batch in flight in each, or kFree
  };

  ActSet todo(int stage, bool backward) const {
    const bool first = stage == 0, last = stage == shape_.last_stage();
    ActSet acts{Act::Load, Act::Forward};
    if (!first) acts.add(Act::RecvForward);
    if (!last) acts.add(Act::SendForward);
    if (!backward) return acts;
    acts.add({Act::BackwardInput, Act::BackwardWeight});
    if (!first) acts.add(Act::SendBackward);
    if (!last) acts.add(Act::RecvBackward);
    return acts;
  }

  void follow(size_t index, const Instr& instr) {
    BEV_CHECK(instr.chunk < shape_.chunks && instr.micro < shape_.micros, Internal,
              "{}: there are {} chunks and {} micro-batches", place_of(rank_, index, instr),
              shape_.chunks, shape_.micros);
    Chunk& chunk = chunks_[instr.chunk];
    ActSet& done = chunk.done[instr.micro];
    const ActSet acts = done_by(instr.act);
    const ActSet foreign = acts.without(chunk.todo), again = acts.also_in(done);
    const ActSet missing = needed_by(instr.act).also_in(chunk.todo).without(done);
    BEV_CHECK(foreign.empty(), Internal, "{}: stage {} of 0 to {} has no {} here",
              place_of(rank_, index, instr), chunk.stage, shape_.last_stage(), foreign.names());
    BEV_CHECK(again.empty(), Internal, "{}: {} a second time", place_of(rank_, index, instr),
              again.names());
    BEV_CHECK(missing.empty(), Internal, "{}: before its {}", place_of(rank_, index, instr),
              missing.names());
    check_slot(index, instr);
    done.add(acts);
    if (chunk.todo.without(done).empty()) chunk.slots[instr.slot] = kFree;
  }

  void check_slot(size_t index, const Instr& instr) {
    Chunk& chunk = chunks_[instr.chunk];
    if (instr.slot >= chunk.slots.size()) chunk.slots.resize(instr.slot + size_t{1}, kFree);
    int64_t& holds = chunk.slots[instr.slot];
    if (instr.act == Act::Load) {
      if (holds != kFree) {
        const ActSet rest = chunk.todo.without(chunk.done[static_cast<size_t>(holds)]);
        throw Error(ErrorKind::Internal,
                    format("{}: the slot is reused while micro-batch {} still needs its {}",
                           place_of(rank_, index, instr), holds, rest.names()));
      }
      holds = instr.micro;
    }
    BEV_CHECK(holds == instr.micro, Internal, "{}: the micro-batch is not in this slot",
              place_of(rank_, index, instr));
  }

  PipelineShape shape_;
  int rank_;
  std::vector<Chunk> chunks_;
};

}  // namespace

ScheduleReport verify_schedule(std::span<const Program> programs, const PipelineShape& shape,
                               std::span<const StageCosts> stages, bool backward) {
  ScheduleReport report;
  for (size_t rank = 0; rank < programs.size(); ++rank) {
    RankCheck(shape, static_cast<int>(rank), backward).follow(programs[rank]);
    report.slots.push_back(slots_of(programs[rank]));
  }
  report.bubble = simulate(programs, shape, stages).bubble();
  return report;
}

}  // namespace bev
