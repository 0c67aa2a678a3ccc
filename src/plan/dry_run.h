// A plan is a run on the null device: the same code, no memory. What it counts is what the real run
// will use, to the byte.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/resolve.h"
#include "device/exec.h"
#include "pipeline/executor.h"

namespace bev {

struct ModuleCount {
  std::string name;  // of a kind of parameter: "layers.*.mlp.up.weight"
  int64_t instances = 0;
  int64_t elements = 0;  // of all instances
};

size_t sum_of(std::span<const MemoryUse> uses);

struct Plan {
  ModelShape model{};
  BatchShape batch{};
  int64_t iterations = 0;
  DeviceKind device{};
  DType dtype{};
  int threads = 1;

  ParallelLayout layout{};
  int rank = 0;
  int64_t model_parameters = 0;  // distinct: a tied matrix counts once
  int64_t parameters = 0;        // those of them that the rank holds
  std::vector<ModuleCount> modules{};

  ArenaSizes arenas{};
  int slots = 1;
  std::vector<MemoryUse> memory{};  // by purpose; its sum is what the run allocates
  size_t memory_bytes() const { return sum_of(memory); }
  std::vector<MemoryUse> activations{}, scratch{};  // who is alive at the peak, by name

  double checkpoint_bytes = 0;  // on disk, of the whole run; 0: it writes none

  Cost step{};                       // of one optimizer step, as executed by the rank
  CommVolume sent{};                 // in one optimizer step
  double model_flops_per_token = 0;  // of the whole model; the rule is in docs/performance.md
  double tokens_per_step() const {
    return static_cast<double>(batch.global_batch) * static_cast<double>(batch.tokens_per_sample());
  }
};

struct DryRunOptions {
  int rank = 0;  // whose plan it is
  // Of a step of the whole pipeline, where it has been verified before.
  const ScheduleReport* schedule = nullptr;
  ModelOptions model{};
};

// REQUIRES: a checked configuration. Takes no memory to speak of, whatever the size of the model.
Plan dry_run(const Config& config, const DryRunOptions& options = {});

// What a rank allocates that differs from the plan's by its number of slots only.
std::vector<MemoryUse> memory_with(const Plan& plan, int slots);

// The costs of a step with `micros` micro-batches, as `rank` executes it: one record per op and
// collective, in their order. OpCost::group is 1 + the Axis that the ranks of a collective differ
// along (Data: the shard group), 0 for several axes.
std::vector<OpCost> record_step(const Config& config, int64_t micros = 1, int rank = 0);

}  // namespace bev
