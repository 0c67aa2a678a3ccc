// What a guard of a run has found and done.
#pragma once

#include <string>

#include "config/sample_ranges.h"
#include "data/data_loader.h"
#include "train/step_runner.h"

namespace bev {

// A step that was issued: which samples it takes.
struct IssuedStep {
  int64_t iteration = 0;
  Loader::Place begin{}, end{};

  int64_t samples() const { return end.consumed - begin.consumed; }
};

enum class GuardAction : uint8_t { Logged, Skipped, RolledBack, Stopped };

struct GuardEvent {
  int64_t iteration = 0;
  SampleRange samples{};  // of the iteration, where they decide
  GuardAction action{};
  bool is_spike = false;
  std::string text;  // what was found and what was done, for people; the first line says most
};

// What is wrong with a step: "the loss of iteration 7 is not finite", "the loss of iteration 7 is a
// spike: 9.31, where up to 4.2 is usual".
std::string describe_findings(int64_t iteration, const StepResult& result);

}  // namespace bev
