// The loop that connects loader, step and log.
#pragma once

#include <functional>
#include <memory>

#include "data/loader.h"
#include "train/step.h"

namespace bev {

// What the user sees of one iteration.
struct Progress {
  int64_t iteration = 0, iterations = 0;  // counted from 1
  int64_t samples = 0;                    // consumed so far
  StepResult result{};
  double seconds = 0;  // of this iteration
  double tokens_per_second = 0;
  double seconds_left = 0;  // at the mean pace so far, without the first iteration
};

struct TrainSummary {
  int64_t iterations = 0, skipped = 0;
  double first_loss = 0, last_loss = 0;
  double seconds = 0, tokens_per_second = 0;
  bool stopped = false;  // before the last iteration, because the user asked
};

class Trainer {
 public:
  Trainer(Assembly& assembly, Loader& loader);

  // Runs all iterations. `report` sees every one; when `should_stop` says so the loop ends after
  // it.
  TrainSummary run(const std::function<void(const Progress&)>& report,
                   const std::function<bool()>& should_stop);

 private:
  Assembly& assembly_;
  Loader& loader_;
  Stepper stepper_;
};

}  // namespace bev
