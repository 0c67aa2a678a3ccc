// Single ops at the shapes a model gives them, against what the machine allows.
#pragma once

#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/measure.h"
#include "config/config.h"
#include "device/exec.h"

namespace bev {

struct OpBench {
  std::string name, shape;
  Timing time{};
  Cost cost{};       // of one call
  double floor = 0;  // seconds: the larger of FLOP over peak and bytes over bandwidth
};

// REQUIRES: a checked configuration. `only`: names of ops; empty: all.
std::vector<OpBench> bench_ops(const Config& config, const std::vector<std::string>& only,
                               double seconds_each);

// The names bench_ops knows.
std::vector<std::string> benchable_ops();

std::string op_bench_table(const std::vector<OpBench>& results);
std::string op_bench_json(const std::vector<OpBench>& results);

}  // namespace bev
