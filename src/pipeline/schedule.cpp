#include "pipeline/schedule.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace bev {

namespace {

std::vector<Program> micro_after_micro(const PipelineShape& shape, bool backward) {
  BEV_CHECK(shape.ranks == 1 && shape.chunks == 1, Internal,
            "a schedule for {} ranks and {} chunks", shape.ranks, shape.chunks);
  Program program;
  for (uint32_t micro = 0; micro < shape.micros; ++micro) {
    program.push_back({Act::Load, 0, micro, 0});
    program.push_back({Act::Forward, 0, micro, 0});
    if (backward) program.push_back({Act::Backward, 0, micro, 0});
  }
  return {program};
}

}  // namespace

std::vector<Program> one_f_one_b(const PipelineShape& shape) {
  return micro_after_micro(shape, true);
}

std::vector<Program> forward_only(const PipelineShape& shape) {
  return micro_after_micro(shape, false);
}

int slots_of(const Program& program) {
  int slots = 0;
  for (const Instr& instr : program) slots = std::max(slots, instr.slot + 1);
  return slots;
}

void verify(const Program& program, const PipelineShape& shape, bool backward) {
  const Act last = backward ? Act::Backward : Act::Forward;
  std::map<uint32_t, int> done;        // acts finished per micro-batch
  std::map<uint16_t, uint32_t> holds;  // the micro-batch in flight in a slot
  for (const Instr& instr : program) {
    const int step = static_cast<int>(instr.act);
    BEV_CHECK(done[instr.micro] == step, Internal, "micro-batch {}: act {} after {} acts",
              instr.micro, step, done[instr.micro]);
    ++done[instr.micro];
    if (instr.act == Act::Load) {
      BEV_CHECK(!holds.contains(instr.slot), Internal, "slot {} reused while micro-batch {} lives",
                instr.slot, holds[instr.slot]);
      holds[instr.slot] = instr.micro;
    }
    BEV_CHECK(holds.contains(instr.slot) && holds[instr.slot] == instr.micro, Internal,
              "micro-batch {} is not in slot {}", instr.micro, instr.slot);
    if (instr.act == last) holds.erase(instr.slot);
  }
  BEV_CHECK(static_cast<int64_t>(done.size()) == shape.micros, Internal,
            "{} of {} micro-batches are computed", done.size(), shape.micros);
  for (const auto& [micro, acts] : done) {
    BEV_CHECK(acts == static_cast<int>(last) + 1, Internal, "micro-batch {} stops after {} acts",
              micro, acts);
  }
}

}  // namespace bev
