// Programs of all ranks on a simulated clock: when each computation begins and ends.
#pragma once

#include <span>

#include "pipeline/program.h"

namespace bev {

// Costs of one stage and one micro-batch, in any unit of time. Loads are free.
struct StageCosts {
  double forward = 1, backward_input = 1, backward_weight = 1;  // Backward takes both
  // From the send until the next stage may receive the output, and the previous stage the gradient.
  double send_forward = 0, send_backward = 0;

  double of(Act act) const;  // a computation
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

// `stages`: costs by stage; empty: every stage costs StageCosts{}.
//
// Between two ranks there is an ordered pipe per direction and channel (comm/communicator.h), which
// carries one message at a time. Sends never block; a receive blocks until its message has arrived.
// A message stays in the slot that sent it until it is received: a load blocks until the slot's
// output is, a backward (a receive, where gradients replace inputs) until the gradient is that the
// slot sent before. Throws an Internal error that names rank, instruction and reason if ranks
// deadlock, if a receive meets another micro-batch or stage than it expects, or if something is
// left in a pipe.
SimulatedSchedule simulate(std::span<const Program> programs, const PipelineShape& shape,
                           std::span<const StageCosts> stages = {});

}  // namespace bev
