// The learning rate schedule (ops/lr_schedule.h) that a configuration asks for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/config_diff.h"
#include "ops/lr_schedule.h"

namespace bev {

// Megatron-LM's rules for a command line: a run given in iterations counts lengths in iterations
// times the global batch, a run given in samples counts samples; what is not given follows from the
// length of the run; the warm-up may be a fraction of the decay length; the weight decay ramp lasts
// the whole run. Throws a Usage error when the lengths contradict each other.
LrSchedule lr_schedule_from(const Config& config, int64_t global_batch, int64_t iterations);

// The schedule of learning rate and weight decay in a run that continues from a checkpoint.

// Beside the fields of a run, a checkpoint holds the schedule that the run followed: it may be that
// of an earlier checkpoint, which the fields do not say, since its lengths follow from another
// batch or another length of the run.
void store_schedule(const LrSchedule& spec, StoredConfig& stored);

// Data error that names `source` when it is missing or nonsense.
LrSchedule load_lr_schedule(const StoredConfig& stored, std::string_view source);

struct ResumedLrSchedule {
  LrSchedule spec;
  // What the run does otherwise than the checkpoint's: "optim.lr = 0.001 (was 0.002)". Empty where
  // it follows the checkpoint's.
  std::vector<std::string> changes{};
};

// checkpoint.scheduler decides whose schedule counts. same: a Usage error lists what differs, where
// anything does. What has no effect is not compared, such as the length of a constant weight decay.
// Where the schedule starts anew (checkpoint.finetune, or load_optimizer false), it is the present
// one. REQUIRES: check(now) found nothing.
ResumedLrSchedule resumed_schedule(const StoredConfig& stored, const Config& now,
                                   std::string_view source);

}  // namespace bev
