#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"

namespace bev {

namespace {

// Of the whole training. A length in samples counts those that are left, which may be taken by
// another batch than those before.
int64_t iterations_from(const Config& config, const RunPosition& start) {
  if (config.train.samples == 0) return resolve_iterations(config);
  return start.iteration +
         resolve_batch_schedule(config).steps_in(config.train.samples, start.data_position);
}

}  // namespace

Trainer::Trainer(Assembly& assembly, TrainingData data, const TrainStart& start)
    : assembly_(assembly),
      data_(std::move(data)),
      batch_(resolve_batch(assembly.config)),
      iterations_(iterations_from(assembly.config, start.position)),
      start_(start.position),
      loader_(data_.train,
              Loader::shape_of(assembly.config, assembly.groups.coordinate(Axis::Data)),
              start_.data_position),
      evaluation_(assembly.executor, batch_, assembly.config.data.is_packed(),
                  assembly.groups.coordinate(Axis::Data), assembly.groups.layout().data),
      stepper_(assembly, start.schedule
                             ? *start.schedule
                             : schedule_from(assembly.config, batch_.global_batch, iterations_)),
      ahead_(assembly.device.is_asynchronous() ? 1 : 0) {
  if (start_.update) stepper_.resume(*start_.update);
}

int Trainer::agree(int here) { return static_cast<int>(assembly_.groups.world().largest(here)); }

bool Trainer::is_eval_due(int64_t iteration) const {
  const EvalConfig& eval = assembly_.config.eval;
  return eval.interval > 0 && iteration % eval.interval == 0 && iteration < iterations_;
}

void Trainer::issue(const TrainObserver& observer, const Issued& issued,
                    std::span<const HostBatch> batches) {
  // What ranks begin to exchange at the end of an iteration ends in the next.
  const int64_t first = assembly_.config.log.trace_iteration;
  const int64_t last = first + (assembly_.groups.world().size() > 1 ? 1 : 0);
  if (observer.trace && issued.iteration == first) {
    trace_.emplace(assembly_.device);
    assembly_.executor.trace_into(&*trace_);
  }
  stepper_.submit(batches);
  if (!trace_ || (issued.iteration < last && issued.iteration < iterations_)) return;
  assembly_.executor.trace_into(nullptr);
  observer.trace(trace_->chrome_json());
  trace_.reset();
}

bool Trainer::report(Course& course, const Issued& issued, const StepResult& result) {
  TrainSummary& summary = course.summary;
  const double now = seconds_now(), seconds = result.seconds;
  course.last = now;
  course.pace.iteration_done(now);
  const double tokens = static_cast<double>(issued.samples * batch_.sequence);
  course.tokens += tokens;
  if (issued.iteration == start_.iteration + 1) summary.first_loss = result.loss;
  summary.iterations = issued.iteration;
  ++summary.ran;
  course.position = issued.first + issued.samples;
  summary.last_loss = result.loss;
  summary.skipped += result.applied ? 0 : 1;
  course.observer.iteration(
      {.iteration = issued.iteration,
       .iterations = iterations_,
       .samples = issued.first + issued.samples,
       .batch = issued.samples,
       .result = result,
       .seconds = seconds,
       .tokens_per_second = tokens / seconds,
       .seconds_left = course.pace.seconds_for(iterations_ - issued.iteration)});
  const bool adapts = scaling_from(assembly_.config).adapts;
  const bool failed = !std::isfinite(result.loss) || (!result.applied && !adapts);
  if (!failed || assembly_.config.guard.nonfinite != OnNonFinite::Stop) return true;
  summary.ending = Ending::NonFinite;
  summary.reason = explain_nonfinite(issued.iteration, issued.first, issued.samples, result);
  return false;
}

bool Trainer::collect(Course& course, size_t left) {
  while (course.issued.size() > left) {
    const Issued issued = course.issued.front();
    course.issued.pop_front();
    if (report(course, issued, stepper_.collect())) continue;
    while (stepper_.in_flight() > 0) stepper_.collect();
    course.issued.clear();
    return false;
  }
  return true;
}

TrainSummary Trainer::run(const TrainObserver& observer) {
  const TrainConfig& t = assembly_.config.train;
  const double start = seconds_now();
  TrainSummary summary;
  summary.iterations = start_.iteration;
  Course course{.observer = observer,
                .summary = summary,
                .pace = Pace(start),
                .start = start,
                .last = start,
                .position = start_.data_position,
                .saved = start_.iteration};
  for (int64_t iteration = start_.iteration + 1; iteration <= iterations_; ++iteration) {
    const int64_t first = loader_.position();
    std::span<const HostBatch> batches;
    std::string unreadable;
    try {
      batches = loader_.next();
    } catch (const Error& error) {
      if (error.kind != ErrorKind::Data) throw;
      unreadable = error.what();
    }
    // The rank that cannot go on, counted from 1.
    const int unable = agree(unreadable.empty() ? 0 : assembly_.groups.world().rank() + 1);
    if (unable != 0) {
      if (!collect(course, 0)) break;
      summary.ending = Ending::BadData;
      summary.reason = !unreadable.empty()
                           ? unreadable
                           : format("rank {} cannot read its samples, and says why", unable - 1);
      break;
    }
    if (iteration == start_.iteration + 1) {
      stepper_.rehearse(batches);
      course.start = course.last = seconds_now();
      course.pace = Pace(course.start);
    }
    course.issued.push_back({iteration, first, loader_.position() - first});
    issue(observer, course.issued.back(), batches);
    const bool eval = is_eval_due(iteration), last = iteration == iterations_;
    const bool is_save_due = observer.save && observer.is_save_due(iteration);
    if (!collect(course, eval || last || is_save_due ? 0 : ahead_)) break;
    if (last) break;
    if (eval) {
      if (!validate(observer, iteration, false, summary)) break;
      course.validated = iteration;
      leave_out(course);
    }
    if (is_save_due) {
      save(course);
      leave_out(course);
    }
    if (observer.between_steps) observer.between_steps();
    const bool late = t.exit_minutes > 0 && course.last - start > 60 * t.exit_minutes;
    const bool interval = t.exit_interval > 0 && iteration % t.exit_interval == 0;
    const Ending here = observer.should_stop() ? Ending::Asked
                        : late                 ? Ending::Duration
                        : interval             ? Ending::Interval
                                               : Ending::Complete;
    const auto ending = static_cast<Ending>(agree(static_cast<int>(here)));
    if (ending == Ending::Complete) continue;
    if (collect(course, 0)) summary.ending = ending;
    break;
  }
  // First of all, what has been trained must not be lost.
  if (observer.save && summary.ending != Ending::NonFinite && course.saved != summary.iterations)
    save(course);
  if (observer.finish_saving) observer.finish_saving();
  summary.applied = stepper_.applied_steps();
  summary.seconds = course.last - course.start;
  summary.tokens_per_second = summary.seconds > 0 ? course.tokens / summary.seconds : 0;
  if (summary.ending == Ending::Complete) validate(observer, summary.iterations, true, summary);
  return summary;
}

void Trainer::leave_out(Course& course) {
  course.pace.pause(seconds_now() - course.last);
  course.last = seconds_now();
  stepper_.pause();
}

void Trainer::save(Course& course) {
  const TrainSummary& summary = course.summary;
  const int64_t done = course.position - start_.data_position;
  const bool is_validated = course.validated == summary.iterations;
  course.saved = summary.iterations;
  course.observer.save({.iteration = summary.iterations,
                        .consumed_samples = start_.consumed_samples + done,
                        .data_position = course.position,
                        .update = stepper_.state(),
                        .loss = summary.last_loss,
                        .valid_loss = is_validated ? summary.valid_loss : std::nullopt});
}

bool Trainer::validate(const TrainObserver& observer, int64_t iteration, bool at_end,
                       TrainSummary& summary) {
  try {
    if (const auto loss = evaluate(data_.valid, "validation", iteration, at_end, observer))
      summary.valid_loss = loss;
    if (at_end) summary.test_loss = evaluate(data_.test, "test", iteration, at_end, observer);
    return true;
  } catch (const Error& error) {
    // What was trained must not be lost; but others may wait for this rank in the validation.
    if (error.kind != ErrorKind::Data || assembly_.groups.world().size() > 1) throw;
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
                 assembly_.config.data.is_packed(), assembly_.groups.coordinate(Axis::Data),
                 assembly_.groups.layout().data);
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
