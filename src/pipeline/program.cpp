#include "pipeline/program.h"

#include <algorithm>
#include <array>

#include "base/format.h"

namespace bev {

std::string_view name_of(Act act) {
  static constexpr std::array<std::string_view, 9> names{
      "Load",     "RecvForward",   "Forward",        "SendForward", "RecvBackward",
      "Backward", "BackwardInput", "BackwardWeight", "SendBackward"};
  return names[static_cast<size_t>(act)];
}

Phase phase_of(Act act) {
  switch (act) {
    case Act::RecvBackward:
    case Act::Backward:
    case Act::BackwardInput:
    case Act::SendBackward: return Phase::BackwardInput;
    case Act::BackwardWeight: return Phase::BackwardWeight;
    default: return Phase::Forward;
  }
}

std::string place_of(int rank, size_t index, const Instr& instr) {
  return format("rank {}, instruction {} ({} of micro-batch {}, chunk {}, slot {})", rank, index,
                name_of(instr.act), instr.micro, instr.chunk, instr.slot);
}

int slots_of(const Program& program, int chunk) {
  int slots = 0;
  for (const Instr& instr : program) {
    if (instr.chunk == chunk) slots = std::max(slots, instr.slot + 1);
  }
  return slots;
}

int slots_of(const Program& program) {
  std::vector<int> slots;  // by chunk
  for (const Instr& instr : program) {
    if (instr.chunk >= slots.size()) slots.resize(instr.chunk + size_t{1});
    slots[instr.chunk] = std::max(slots[instr.chunk], instr.slot + 1);
  }
  int sum = 0;
  for (const int n : slots) sum += n;
  return sum;
}

}  // namespace bev
