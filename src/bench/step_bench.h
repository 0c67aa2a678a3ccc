// Whole training steps, against what the machine allows.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/machine_peak.h"
#include "bench/measure.h"
#include "bench/step_floor.h"
#include "device/timing.h"
#include "plan/dry_run.h"

namespace bev {

// Where the time of one traced step goes, by class of op.

struct OpTime {
  std::string op;
  int64_t calls = 0;
  double seconds = 0;
};

struct ClassTime {
  std::string_view name;
  std::vector<OpTime> ops;  // the longest first
  int64_t calls() const;
  double seconds() const;
};

struct StepBreakdown {
  std::vector<ClassTime> classes;  // those that occur
  double total = 0;                // seconds from the begin of the first op to the end of the last
  // What of it lies in no op: waiting for the host, copies and the timers themselves.
  double gaps() const;
};

// The class of an op; "other" for one that nobody has put into a class.
std::string_view class_of(std::string_view op);

// `spans`: those of one stream, which follow each other.
StepBreakdown break_down(std::span<const OpSpan> spans);

struct StepBench {
  Plan plan{};
  double seconds_to_first_step = 0;  // from the start of building until the first step begins
  std::string autotune{};            // result of autotuning before the first step; may be empty
  double first_step = 0;
  Timing step{};
  std::optional<Floor> floor{};
  std::optional<StepBreakdown> breakdown{};
  MachinePeak peak{};
  double promised_flops = 0;       // of the GPU, by its maker; 0: unknown, or no GPU
  size_t allocated_bytes = 0;      // on the device
  double peak_resident_bytes = 0;  // VmHWM of this process after the steps
  double resident_before = 0;      // of the program itself, before anything was allocated

  double tokens_per_second() const { return plan.tokens_per_step() / step.median; }
  double flops_per_second() const { return plan.model_flops_per_token * tokens_per_second(); }
};

struct StepBenchOptions {
  double seconds = 10;
  int64_t min_steps = 5;
  bool floor = false;
  bool breakdown = false;
};

// Trains on made-up tokens and times the steps. Where the device works on its own, steps are issued
// ahead of their results as in training, and the time of a step is that between two results. With
// `floor` the GEMMs are timed between the steps, so that both see the same machine. With
// `breakdown` one more step is traced, after the others.
StepBench bench_step(const Config& config, const StepBenchOptions& options);

std::string step_bench_table(const StepBench& bench);
std::string step_bench_json(const StepBench& bench);

}  // namespace bev
