// Programs of all ranks on a simulated clock: when each computation begins and ends.
#pragma once

#include <span>

#include "pipeline/program.h"

namespace bev {

// What a stage's computation of a micro-batch takes, in any unit. Loads and transfers are free.
struct ScheduleCosts {
  double forward = 1, backward_input = 1, backward_weight = 1;  // Backward takes both

  double of(Act act) const;
};

struct TimedInstr {
  Instr instr;
  double begin, end;
};

struct SimulatedSchedule {
  std::vector<std::vector<TimedInstr>> ranks;  // computations, in the order of the program
  double end = 0;                              // of the last one

  // Idle time of all ranks over the time in which they compute.
  double bubble() const;
};

// Between two ranks there is an ordered pipe per direction and channel (comm/communicator.h). Sends
// never block; a receive blocks until its pipe has something. What was sent stays in its slot until
// it is received: a load blocks until the slot's output is, a backward (a receive, where gradients
// replace inputs) until the gradient is that the slot sent before. Throws an Internal error that
// names rank, instruction and reason if ranks block for ever, if a receive meets another
// micro-batch or stage than it expects, or if something is left in a pipe.
SimulatedSchedule simulate(std::span<const Program> programs, const PipelineShape& shape,
                           const ScheduleCosts& costs = {});

}  // namespace bev
