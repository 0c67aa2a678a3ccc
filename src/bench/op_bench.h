// Single ops at the shapes a model gives them, against what the machine allows.
#pragma once

#include <string>
#include <vector>

#include "bench/machine_peak.h"
#include "bench/measure.h"
#include "config/config.h"
#include "device/exec.h"

namespace bev {

struct OpTiming {
  std::string name, shape;
  Timing time{};
  Cost cost{};       // of one call
  double floor = 0;  // seconds: the larger of FLOP over peak and bytes over bandwidth
};

struct OpBench {
  MachinePeak peak{};
  std::vector<OpTiming> ops;
};

// REQUIRES: a checked configuration. `only`: names of benched_ops(); empty: all.
OpBench bench_ops(const Config& config, const std::vector<std::string>& only, double seconds_each);

std::string op_bench_table(const OpBench& bench);
std::string op_bench_json(const OpBench& bench);

}  // namespace bev
