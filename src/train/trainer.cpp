#include "train/trainer.h"

#include "base/clock.h"

namespace bev {

Trainer::Trainer(Assembly& assembly, Loader& loader)
    : assembly_(assembly),
      loader_(loader),
      stepper_(assembly, schedule_from(assembly.config, resolve_batch(assembly.config).global_batch,
                                       resolve_iterations(assembly.config))) {}

TrainSummary Trainer::run(const std::function<void(const Progress&)>& report,
                          const std::function<bool()>& should_stop) {
  const BatchShape batch = resolve_batch(assembly_.config);
  const double tokens = static_cast<double>(batch.global_batch * batch.sequence);
  const int64_t iterations = resolve_iterations(assembly_.config);
  TrainSummary summary;
  const double start = seconds_now();
  double steady_start = start;  // the first iteration touches all memory for the first time
  double last = start;
  for (int64_t iteration = 1; iteration <= iterations; ++iteration) {
    const StepResult result = stepper_.step(loader_.next());
    const double now = seconds_now();
    const double seconds = now - last;
    last = now;
    if (iteration == 1) {
      summary.first_loss = result.loss;
      steady_start = now;
    }
    summary.iterations = iteration;
    summary.last_loss = result.loss;
    summary.skipped += result.applied ? 0 : 1;
    const double pace =
        iteration > 1 ? (now - steady_start) / static_cast<double>(iteration - 1) : seconds;
    report({.iteration = iteration,
            .iterations = iterations,
            .samples = loader_.samples_consumed(),
            .result = result,
            .seconds = seconds,
            .tokens_per_second = tokens / seconds,
            .seconds_left = pace * static_cast<double>(iterations - iteration)});
    if (should_stop() && iteration < iterations) {
      summary.stopped = true;
      break;
    }
  }
  summary.seconds = last - start;
  summary.tokens_per_second = tokens * static_cast<double>(summary.iterations) / summary.seconds;
  return summary;
}

}  // namespace bev
