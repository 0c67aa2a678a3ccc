// The learning rate schedule (ops/lr_schedule.h) that a configuration asks for.
#pragma once

#include "config/config.h"
#include "ops/lr_schedule.h"

namespace bev {

// Megatron-LM's rules for a command line: a run given in iterations counts lengths in iterations
// times the global batch, a run given in samples counts samples; what is not given follows from the
// length of the run; the warm-up may be a fraction of the decay length; the weight decay ramp lasts
// the whole run. Throws a Usage error when the lengths contradict each other.
ScheduleSpec schedule_from(const Config& config, int64_t global_batch, int64_t iterations);

}  // namespace bev
