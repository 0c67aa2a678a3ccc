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
// the whole run. Throws a Usage error if the lengths contradict each other.
LrSchedule lr_schedule_from(const Config& config, int64_t global_batch, int64_t iterations);

// The schedule of learning rate and weight decay in a run that continues from a checkpoint.

// A checkpoint stores the schedule that the run followed as well as the configuration: the schedule
// may come from an earlier checkpoint, whose lengths followed from another batch size or another
// length of the run.
void store_schedule(const LrSchedule& spec, StoredConfig& stored);

// Throws a Data error that names `source` if it is missing or invalid.
LrSchedule load_lr_schedule(const StoredConfig& stored, std::string_view source);

struct ResumedLrSchedule {
  LrSchedule spec;
  // Differences from the schedule of the checkpoint: "optim.lr = 0.001 (was 0.002)". Empty if the
  // run follows that schedule.
  std::vector<std::string> changes{};
};

// checkpoint.scheduler selects the schedule. same: a Usage error lists the differences, if there
// are any. Values without effect are not compared, such as the length of a constant weight decay.
// If the schedule restarts (checkpoint.finetune, or load_optimizer false), it is that of the
// configuration. REQUIRES: check(now) found nothing.
ResumedLrSchedule resumed_schedule(const StoredConfig& stored, const Config& now,
                                   std::string_view source);

}  // namespace bev
