#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"

namespace bev {

namespace {

// The pace of a run. The first iteration touches all memory for the first time and does not count.
class Pace {
 public:
  explicit Pace(double start) : start_(start), steady_(start) {}

  void iteration_done(int64_t iteration, double now) {
    if (iteration == 1) steady_ = now;
    mean_ = iteration > 1 ? (now - steady_ - paused_) / static_cast<double>(iteration - 1)
                          : now - start_;
  }
  // Validation is no part of an iteration.
  void pause(double seconds) { paused_ += seconds; }
  double seconds_for(int64_t iterations) const { return mean_ * static_cast<double>(iterations); }

 private:
  double start_, steady_, mean_ = 0, paused_ = 0;
};

}  // namespace

Trainer::Trainer(Assembly& assembly, TrainingData data)
    : assembly_(assembly),
      data_(std::move(data)),
      batch_(resolve_batch(assembly.config)),
      iterations_(resolve_iterations(assembly.config)),
      loader_(data_.train, Loader::shape_of(assembly.config)),
      evaluation_(assembly.executor, batch_, assembly.config.data.is_packed()),
      stepper_(assembly, schedule_from(assembly.config, batch_.global_batch, iterations_)) {}

TrainSummary Trainer::run(const TrainObserver& observer) {
  const TrainConfig& t = assembly_.config.train;
  TrainSummary summary;
  const double start = seconds_now();
  double last = start, tokens = 0;
  Pace pace(start);
  for (int64_t iteration = 1; iteration <= iterations_; ++iteration) {
    const int64_t first = loader_.position();
    std::span<const HostBatch> batches;
    try {
      batches = loader_.next();
    } catch (const Error& error) {
      if (error.kind != ErrorKind::Data) throw;
      summary.ending = Ending::BadData;
      summary.reason = error.what();
      break;
    }
    const StepResult result = stepper_.step(batches);
    const double now = seconds_now(), seconds = now - last;
    last = now;
    pace.iteration_done(iteration, now);
    const int64_t samples = loader_.position() - first;
    const double step_tokens = static_cast<double>(samples * batch_.sequence);
    tokens += step_tokens;
    if (iteration == 1) summary.first_loss = result.loss;
    summary.iterations = iteration;
    summary.last_loss = result.loss;
    summary.skipped += result.applied ? 0 : 1;
    observer.iteration({.iteration = iteration,
                        .iterations = iterations_,
                        .samples = loader_.position(),
                        .batch = samples,
                        .result = result,
                        .seconds = seconds,
                        .tokens_per_second = step_tokens / seconds,
                        .seconds_left = pace.seconds_for(iterations_ - iteration)});
    if ((!result.applied || !std::isfinite(result.loss)) && t.nonfinite == NonFinite::Stop) {
      summary.ending = Ending::NonFinite;
      summary.reason = explain_nonfinite(iteration, first, samples, result);
      break;
    }
    const EvalConfig& eval = assembly_.config.eval;
    if (eval.interval > 0 && iteration % eval.interval == 0 && iteration < iterations_) {
      if (!validate(observer, iteration, false, summary)) break;
      pace.pause(seconds_now() - last);
      last = seconds_now();
    }
    if (iteration == iterations_) break;
    if (observer.should_stop()) {
      summary.ending = Ending::Asked;
      break;
    }
    if (t.exit_minutes > 0 && last - start > 60 * t.exit_minutes) {
      summary.ending = Ending::Duration;
      break;
    }
    if (t.exit_interval > 0 && iteration % t.exit_interval == 0) {
      summary.ending = Ending::Interval;
      break;
    }
  }
  summary.applied = stepper_.applied_steps();
  summary.seconds = last - start;
  summary.tokens_per_second = summary.seconds > 0 ? tokens / summary.seconds : 0;
  if (summary.ending == Ending::Complete) validate(observer, summary.iterations, true, summary);
  return summary;
}

bool Trainer::validate(const TrainObserver& observer, int64_t iteration, bool at_end,
                       TrainSummary& summary) {
  try {
    if (const auto loss = evaluate(data_.valid, "validation", iteration, at_end, observer))
      summary.valid_loss = loss;
    if (at_end) summary.test_loss = evaluate(data_.test, "test", iteration, at_end, observer);
    return true;
  } catch (const Error& error) {
    // What was trained must not be lost.
    if (error.kind != ErrorKind::Data) throw;
    summary.ending = Ending::BadData;
    summary.reason = error.what();
    return false;
  }
}

std::optional<double> Trainer::evaluate(const HeldSamples& held, std::string_view split,
                                        int64_t iteration, bool at_end,
                                        const TrainObserver& observer) {
  const int64_t wanted = assembly_.config.eval.iterations;
  if (held.samples == nullptr || wanted == 0) return std::nullopt;
  const double start = seconds_now();
  const int64_t samples =
      wanted > held.count / batch_.global_batch ? held.count : wanted * batch_.global_batch;
  // As a function of the iteration, so that a run that was interrupted asks for the same.
  const EvalConfig& eval = assembly_.config.eval;
  const int64_t done = eval.interval > 0 ? iteration / eval.interval - (at_end ? 0 : 1) : 0;
  const bool is_test = &held == &data_.test;
  const int64_t first = held.goes_on && !is_test ? done * samples : 0;
  const LossSum sum = evaluation_.run(*held.samples, first, samples);
  const Validation validation{.iteration = iteration,
                              .split = split,
                              .at_end = at_end,
                              .samples = samples,
                              .loss = sum.loss / std::max(sum.weight, 1.0),
                              .seconds = seconds_now() - start};
  observer.validation(validation);
  return validation.loss;
}

std::string Trainer::explain_nonfinite(int64_t iteration, int64_t first, int64_t count,
                                       const StepResult& result) {
  // The update was not applied, so each sample alone can be asked again.
  std::string found;
  int64_t bad = 0;
  Evaluation one(assembly_.executor, {batch_.sequence, batch_.micro_batch, batch_.micro_batch, 1},
                 assembly_.config.data.is_packed());
  for (int64_t sample = first; sample < first + count; ++sample) {
    const LossSum sum = one.run(*data_.train, sample, 1);
    if (std::isfinite(sum.loss)) continue;
    if (++bad <= 3) found += format("\n    {}", data_.train->describe(sample));
  }
  const std::string what = std::isfinite(result.loss) ? "the gradient" : "the loss";
  if (bad == 0)
    return format(
        "{} of iteration {} is not finite, although the loss of each of its samples {} "
        "to {} is",
        what, iteration, first, first + count - 1);
  return format(
      "{} of iteration {} is not finite; {} of its {} samples have a loss that is not:{}{}", what,
      iteration, bad, count, found, bad > 3 ? "\n    ..." : "");
}

}  // namespace bev
