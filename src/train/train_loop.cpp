#include "train/train_loop.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "base/process.h"
#include "comm/communicator.h"

namespace bev {

namespace {

// Iterations of the whole training. If its length is in samples, the remaining samples determine
// the remaining iterations: their batch size may differ from that of earlier ones.
int64_t iterations_from(const Config& config, const RunPosition& start) {
  if (config.train.samples == 0) return resolve_iterations(config);
  return start.iteration +
         resolve_batch_schedule(config).steps_in(config.train.samples, start.consumed_samples);
}

DataLoader::Position place_of(const RunPosition& position) {
  return {.position = position.data_position, .consumed = position.consumed_samples};
}

// Diagnosing every bad step would take longer than the steps: the next diagnosis follows after this
// many iterations.
constexpr int64_t kExplainInterval = 100;

// The policy for the findings; the strictest if several apply.
struct Policy {
  bool stops = false, rolls_back = false, rejects = false;
};

Policy policy_of(const GuardConfig& guard, int findings) {
  Policy policy;
  if ((findings & (kLossNotFinite | kNormNotFinite)) != 0) {
    policy.stops = guard.nonfinite == OnNonFinite::Stop;
    policy.rolls_back = guard.nonfinite == OnNonFinite::Rollback;
    policy.rejects = true;
  }
  for (const auto& [finding, on] :
       {std::pair{kLossSpike, guard.loss_spike}, std::pair{kNormSpike, guard.norm_spike}}) {
    if ((findings & finding) == 0) continue;
    policy.stops = policy.stops || on == OnSpike::Stop;
    policy.rolls_back = policy.rolls_back || on == OnSpike::Rollback;
    policy.rejects = policy.rejects || on > OnSpike::Log;
  }
  return policy;
}

bool is_spike(int findings) { return (findings & (kLossSpike | kNormSpike)) != 0; }

// Packs the requests of one rank and its reason to end the run into one number, of which agree()
// takes the maximum over the ranks. The requests that only the first rank receives are in the high
// bits. If they win over a signal to another rank, that signal is still pending at the next step.
int64_t pack(ExitReason ending, const RunRequests& w) {
  const int64_t files =
      (w.stop ? 8 : 0) | (w.save ? 4 : 0) | (w.evaluate ? 2 : 0) | (w.rate ? 1 : 0);
  return files << 16 | static_cast<int64_t>(ending) << 8 | int64_t{w.signal & 0xff};
}

}  // namespace

TrainLoop::TrainLoop(TrainingState& assembly, TrainingData data, const TrainStart& start)
    : assembly_(assembly),
      data_(std::move(data)),
      batch_(resolve_batch(assembly.config)),
      iterations_(iterations_from(assembly.config, start.position)),
      start_(start.position),
      left_out_(parse_sample_ranges(assembly.config.data.skip).ranges),
      evaluation_(assembly.executor, batch_, assembly.config.data.is_packed(),
                  assembly.groups.coordinate(Axis::Data), assembly.groups.layout().data),
      stepper_(assembly, start.schedule
                             ? *start.schedule
                             : lr_schedule_from(assembly.config, batch_.global_batch, iterations_)),
      diagnosis_(assembly, stepper_, data_.train),
      timers_(assembly.config.log),
      ahead_(assembly.device.is_asynchronous() ? 1 : 0) {
  if (assembly.config.guard.hash_interval > 0) replicas_.emplace(assembly);
  start_at(start_);
}

SampleRanges TrainLoop::skipped_samples() const {
  SampleRanges all = left_out_;
  all.add(skipped_);
  return all;
}

void TrainLoop::start_at(const RunPosition& position) {
  skipped_.add(position.skipped);
  const SampleRanges all = skipped_samples();
  loader_.emplace(data_.train,
                  DataLoader::shape_of(assembly_.config, assembly_.groups.coordinate(Axis::Data)),
                  place_of(position), all);
  if (position.update) stepper_.resume(*position.update);
}

bool TrainLoop::is_eval_due(int64_t iteration) const {
  const EvalConfig& eval = assembly_.config.eval;
  return eval.interval > 0 && iteration % eval.interval == 0 && iteration < iterations_;
}

bool TrainLoop::is_check_due(int64_t iteration) const {
  return replicas_ && iteration % assembly_.config.guard.hash_interval == 0;
}

std::string TrainLoop::replica_difference() {
  return replicas_ ? replicas_->find_difference() : "";
}

void TrainLoop::issue(const TrainObserver& observer, const SubmittedStep& issued,
                      std::span<const HostBatch> batches) {
  // Communication that starts at the end of an iteration ends in the next.
  const int64_t first = assembly_.config.log.trace_iteration;
  const int64_t last = first + (assembly_.groups.world().size() > 1 ? 1 : 0);
  if (observer.trace && issued.iteration == first) trace_.emplace(assembly_.device);
  std::optional<Trace> ops;
  if (!trace_ && timers_.wants_ops()) ops.emplace(assembly_.device);
  if (trace_ || ops) assembly_.executor.trace_into(trace_ ? &*trace_ : &*ops);
  stepper_.submit(batches);
  if (ops) {
    assembly_.executor.trace_into(nullptr);
    timers_.add(ops->spans());
  }
  if (!trace_ || (issued.iteration < last && issued.iteration < iterations_)) return;
  assembly_.executor.trace_into(nullptr);
  observer.trace(trace_->chrome_json());
  trace_.reset();
}

void TrainLoop::report(State& course, const SubmittedStep& issued, const StepResult& result) {
  TrainSummary& summary = course.summary;
  const double now = seconds_now(), seconds = result.seconds;
  course.last = now;
  course.pace.iteration_done(now);
  const double tokens = static_cast<double>(issued.samples() * batch_.sequence);
  course.tokens += tokens;
  if (issued.iteration == start_.iteration + 1) summary.first_loss = result.loss;
  ++summary.ran;
  summary.last_loss = result.loss;
  summary.skipped += result.applied ? 0 : 1;
  if (timers_.is_on()) timers_.add(result);
  course.observer.iteration(
      {.iteration = issued.iteration,
       .iterations = iterations_,
       .samples = issued.end.consumed,
       .batch = issued.samples(),
       .result = result,
       .seconds = seconds,
       .tokens_per_second = tokens / seconds,
       .seconds_left = course.pace.seconds_for(iterations_ - issued.iteration)});
  if (result.findings != 0) {
    const Policy policy = policy_of(assembly_.config.guard, result.findings);
    if (is_spike(result.findings)) ++summary.spikes;
    if (policy.stops || policy.rolls_back) {
      course.halted = State::BadStep{issued, result};
      return;
    }
    course.odd.push_back({issued, result});
  }
  summary.iterations = issued.iteration;
  course.place = issued.end;
  course.loss = result.loss;
}

bool TrainLoop::collect(State& course, size_t left) {
  while (course.issued.size() > left) {
    const SubmittedStep issued = course.issued.front();
    course.issued.pop_front();
    report(course, issued, stepper_.collect());
    // None of the later steps was applied.
    if (course.halted) {
      while (stepper_.in_flight() > 0) stepper_.collect();
      course.issued.clear();
    }
    if (!course.odd.empty() && (course.halted || !course.issued.empty())) left = 0;
  }
  if (!course.odd.empty()) diagnose_bad_steps(course);
  return !course.halted;
}

void TrainLoop::diagnose_bad_steps(State& course) {
  const SampleRanges all = skipped_samples();
  for (const State::BadStep& bad : course.odd) {
    const Policy policy = policy_of(assembly_.config.guard, bad.result.findings);
    std::string text = describe_findings(bad.step.iteration, bad.result);
    text += policy.rejects ? "; its update is skipped" : "; the training goes on";
    text += format("; its samples are {} to {}", all.next_outside(bad.step.begin.position),
                   bad.step.end.position - 1);
    const bool is_new =
        course.explained == 0 || bad.step.iteration >= course.explained + kExplainInterval;
    if (is_new) {
      course.explained = bad.step.iteration;
      text += diagnosis_.explain(bad.step, all, bad.result);
      leave_out(course);
    }
    if (course.observer.event)
      course.observer.event({.iteration = bad.step.iteration,
                             .samples = {bad.step.begin.position, bad.step.end.position},
                             .action = policy.rejects ? GuardAction::Skipped : GuardAction::Logged,
                             .is_spike = is_spike(bad.result.findings),
                             .text = std::move(text)});
  }
  course.odd.clear();
}

bool TrainLoop::recover_from_step(State& course) {
  const State::BadStep bad = *course.halted;
  course.halted.reset();
  const SampleRanges all = skipped_samples();
  std::string text =
      format("{}; its samples are {} to {}", describe_findings(bad.step.iteration, bad.result),
             all.next_outside(bad.step.begin.position), bad.step.end.position - 1);
  text += diagnosis_.explain(bad.step, all, bad.result);
  GuardEvent event{.iteration = bad.step.iteration,
                   .samples = {bad.step.begin.position, bad.step.end.position},
                   .action = GuardAction::Stopped,
                   .is_spike = is_spike(bad.result.findings),
                   .text = {}};
  const bool goes_back = !policy_of(assembly_.config.guard, bad.result.findings).stops &&
                         roll_back_to(course, bad.step.iteration - 1, &bad.step, text);
  if (goes_back) {
    event.action = GuardAction::RolledBack;
  } else {
    course.summary.ending = event.is_spike ? ExitReason::Spike : ExitReason::NonFinite;
    course.summary.reason = text;
  }
  event.text = std::move(text);
  if (course.observer.event) course.observer.event(event);
  leave_out(course);
  return goes_back;
}

bool TrainLoop::recover_from_corruption(State& course, const std::string& difference) {
  std::string text =
      format("after iteration {}, with {} samples consumed, ranks hold different copies: {}",
             course.summary.iterations, course.place.consumed, difference);
  const bool goes_back = assembly_.config.guard.corruption == OnCorruption::Rollback &&
                         roll_back_to(course, course.summary.iterations, nullptr, text);
  if (!goes_back) {
    course.summary.ending = ExitReason::Corruption;
    course.summary.reason = text;
  }
  if (course.observer.event)
    course.observer.event({.iteration = course.summary.iterations,
                           .samples = {0, course.place.position},
                           .action = goes_back ? GuardAction::RolledBack : GuardAction::Stopped,
                           .text = std::move(text)});
  leave_out(course);
  return goes_back;
}

bool TrainLoop::roll_back_to(State& course, int64_t most, const SubmittedStep* bad,
                             std::string& why) {
  const GuardConfig& guard = assembly_.config.guard;
  if (!course.observer.roll_back) {
    why += "\n  there are no checkpoints to go back to";
    return false;
  }
  const bool is_saved = !course.observer.finish_saving || course.observer.finish_saving();
  if (course.has_saved && is_saved) course.rollbacks = 0;
  course.has_saved = false;
  if (++course.rollbacks > guard.rollbacks) {
    why += format("\n  {} rollbacks since the last checkpoint did not help (guard.rollbacks)",
                  guard.rollbacks);
    return false;
  }
  const double rate_factor = stepper_.state()[kLrScale];
  RunPosition position = course.observer.roll_back(most);
  if (!position.update) {
    position.update.emplace();
    reset_update_state(scaling_from(assembly_.config), position.update->data());
  }
  // Keep the learning-rate factor that the user requested.
  (*position.update)[kLrScale] = rate_factor;
  if (bad != nullptr) {
    const int64_t batch = bad->samples();
    const SampleRange range{
        std::max(position.data_position, bad->begin.position - guard.skip_before * batch),
        bad->end.position + guard.skip_after * batch};
    skipped_.add(range);
    why += format(
        "\n  rolled back to iteration {}; samples {} to {} are left out from now on "
        "(--data.skip {}-{} does it in another run)",
        position.iteration, range.begin, range.end - 1, range.begin, range.end - 1);
  } else {
    why += format("\n  rolled back to iteration {}", position.iteration);
  }
  start_at(position);
  ++course.summary.rollbacks;
  course.summary.iterations = course.saved = position.iteration;
  course.place = place_of(position);
  course.next = position.iteration + 1;
  course.explained = 0;
  return true;
}

std::optional<std::span<const HostBatch>> TrainLoop::read(State& course) {
  std::span<const HostBatch> batches;
  std::string unreadable;
  const double begun = seconds_now();
  try {
    batches = loader_->next();
  } catch (const Error& error) {
    if (error.kind != ErrorKind::Data) throw;
    unreadable = error.what();
  }
  if (timers_.is_on()) timers_.add("batch-generator", seconds_now() - begun);
  // 1 + the rank that cannot read its data; 0: none.
  const int64_t unable =
      all_reduce_max(unreadable.empty() ? 0 : assembly_.groups.world().rank() + 1);
  if (unable == 0) return batches;
  course.summary.ending = ExitReason::BadData;
  Communicator& world = assembly_.groups.world();
  const auto culprit = static_cast<int>(unable - 1);
  const std::string why = broadcast_text(world, unreadable, culprit);
  course.summary.reason = world.size() > 1 ? format("rank {}: {}", culprit, why) : why;
  return std::nullopt;
}

ExitReason TrainLoop::ending_after(int64_t iteration, const DataLoader::Position& place) const {
  const TrainConfig& t = assembly_.config.train;
  if (t.exit_minutes > 0 && process_seconds() > 60 * t.exit_minutes) return ExitReason::Duration;
  if (t.exit_samples > 0 && place.consumed >= t.exit_samples) return ExitReason::Samples;
  if (t.exit_after > 0 && iteration >= start_.iteration + t.exit_after) return ExitReason::After;
  if (t.exit_interval > 0 && iteration % t.exit_interval == 0) return ExitReason::Interval;
  return ExitReason::Complete;
}

TrainLoop::Agreed TrainLoop::agree(const TrainObserver& observer, ExitReason here) {
  const RunRequests own = observer.poll_requests();
  if (own.stop) here = ExitReason::Request;
  if (own.signal != 0) here = ExitReason::Signal;
  const int64_t packed = all_reduce_max(pack(here, own));
  const int64_t files = packed >> 16;
  Agreed agreed{.ending = static_cast<ExitReason>(packed >> 8 & 0xff),
                .requests = {.signal = static_cast<int>(packed & 0xff),
                             .stop = (files & 8) != 0,
                             .save = (files & 4) != 0,
                             .evaluate = (files & 2) != 0}};
  // Non-negative doubles have the order of their bits.
  if ((files & 1) != 0)
    agreed.requests.rate = std::bit_cast<double>(all_reduce_max(
        own.rate && pack(here, own) == packed ? std::bit_cast<int64_t>(*own.rate) : 0));
  return agreed;
}

void TrainLoop::acknowledge(State& course, const RunRequests& requests, bool is_saved,
                            bool is_validated) {
  const int64_t iteration = course.summary.iterations;
  if (course.observer.acknowledge) course.observer.acknowledge(requests, iteration);
  if (requests.rate) stepper_.set_lr_scale(*requests.rate);
  if (requests.evaluate && !is_validated) validate(course, false);
  if (requests.save && !is_saved && course.observer.save) save(course);
  leave_out(course);
}

bool TrainLoop::advance(State& course) {
  const TrainObserver& observer = course.observer;
  TrainSummary& summary = course.summary;
  const int64_t iteration = course.next;
  const DataLoader::Position begin = loader_->place();
  const auto batches = read(course);
  if (!batches) {
    if (collect(course, 0)) return false;
    summary.ending = ExitReason::Complete;
    return recover_from_step(course);
  }
  if (summary.ran == 0 && course.issued.empty()) {
    stepper_.autotune(*batches);
    course.start = course.last = seconds_now();
    course.pace = Pace(course.start);
  }
  course.issued.push_back({iteration, begin, loader_->place()});
  issue(observer, course.issued.back(), *batches);
  if (timers_.is_on()) timers_.count_iteration();
  ++course.next;
  const bool eval = is_eval_due(iteration), last = iteration == iterations_;
  const bool is_save_due = observer.save && observer.is_save_due(iteration);
  const bool is_checked = is_check_due(iteration) || (replicas_ && (last || is_save_due));
  if (!collect(course, eval || last || is_save_due || is_checked ? 0 : ahead_))
    return recover_from_step(course);
  if (is_checked) {
    if (const std::string difference = replica_difference(); !difference.empty())
      return recover_from_corruption(course, difference);
  }
  if (timers_.is_on() && iteration % assembly_.config.train.log_interval == 0) {
    const std::string table = timers_.take_table(assembly_.groups.world());
    if (observer.timers) observer.timers(table);
  }
  if (last) return false;
  if (eval) {
    if (!validate(course, false)) return false;
    leave_out(course);
  }
  if (is_save_due) {
    save(course);
    leave_out(course);
  }
  if (observer.between_steps) observer.between_steps();
  const Agreed agreed = agree(observer, ending_after(iteration, loader_->place()));
  const bool is_requested = agreed.requests.stop || agreed.requests.save ||
                            agreed.requests.evaluate || agreed.requests.rate.has_value();
  if (agreed.ending == ExitReason::Complete && !is_requested) return true;
  if (!collect(course, 0)) return recover_from_step(course);
  if (agreed.ending != ExitReason::Complete || agreed.requests.save) {
    if (const std::string difference = replica_difference(); !difference.empty())
      return recover_from_corruption(course, difference);
  }
  if (is_requested) acknowledge(course, agreed.requests, is_save_due, eval);
  if (agreed.ending == ExitReason::Complete) return summary.ending == ExitReason::Complete;
  summary.ending = agreed.ending;
  summary.signal = agreed.requests.signal;
  return false;
}

TrainSummary TrainLoop::run(const TrainObserver& observer) {
  const double start = seconds_now();
  TrainSummary summary;
  summary.iterations = start_.iteration;
  summary.planned = iterations_;
  State course{.observer = observer,
               .summary = summary,
               .pace = Pace(start),
               .start = start,
               .last = start,
               .next = start_.iteration + 1,
               .place = place_of(start_),
               .saved = start_.iteration};
  if (!assembly_.config.train.skip_train && course.next <= iterations_) {
    // Honour stop requests that arrived before the first step.
    const int64_t most = assembly_.config.train.exit_samples;
    const bool has_enough = most > 0 && start_.consumed_samples >= most;
    const Agreed agreed = agree(observer, has_enough ? ExitReason::Samples : ExitReason::Complete);
    summary.ending = agreed.ending;
    summary.signal = agreed.requests.signal;
    if (agreed.requests.stop && observer.acknowledge)
      observer.acknowledge({.stop = true}, summary.iterations);
    bool goes_on = agreed.ending == ExitReason::Complete;
    while (goes_on && course.next <= iterations_) goes_on = advance(course);
  }
  // Save the trained state first.
  if (observer.save && summary.ending != ExitReason::Corruption &&
      course.saved != summary.iterations) {
    const std::string difference =
        summary.ending >= ExitReason::NonFinite ? replica_difference() : "";
    if (difference.empty()) {
      save(course);
    } else {
      summary.ending = ExitReason::Corruption;
      summary.reason += format("\n  ranks hold different copies: {}", difference);
    }
  }
  if (observer.finish_saving) observer.finish_saving();
  summary.applied = stepper_.applied_steps();
  summary.seconds = course.last - course.start;
  summary.tokens_per_second = summary.seconds > 0 ? course.tokens / summary.seconds : 0;
  if (summary.ending == ExitReason::Complete) validate(course, true);
  if (assembly_.config.train.skip_train && summary.ending == ExitReason::Complete)
    summary.ending = ExitReason::Evaluated;
  // Acknowledge a stop request that arrives now, so that the next run does not find it.
  if (observer.acknowledge && observer.poll_requests().stop)
    observer.acknowledge({.stop = true}, summary.iterations);
  return summary;
}

void TrainLoop::leave_out(State& course) {
  course.pace.pause(seconds_now() - course.last);
  course.last = seconds_now();
  stepper_.pause();
}

void TrainLoop::save(State& course) {
  const TrainSummary& summary = course.summary;
  const bool is_validated = course.validated == summary.iterations;
  course.saved = summary.iterations;
  course.has_saved = true;
  const double begun = seconds_now();
  course.observer.save({.iteration = summary.iterations,
                        .consumed_samples = course.place.consumed,
                        .data_position = course.place.position,
                        .skipped = skipped_,
                        .update = stepper_.state(),
                        .loss = course.loss,
                        .valid_loss = is_validated ? summary.valid_loss : std::nullopt});
  if (timers_.is_on()) timers_.add("save-checkpoint", seconds_now() - begun);
}

bool TrainLoop::validate(State& course, bool at_end) {
  TrainSummary& summary = course.summary;
  const TrainObserver& observer = course.observer;
  const int64_t iteration = summary.iterations;
  const double begun = seconds_now();
  if (observer.evaluating) observer.evaluating();
  try {
    if (const auto loss = evaluate(data_.valid, "validation", iteration, at_end, observer)) {
      summary.valid_loss = loss;
      course.validated = iteration;
    }
    if (at_end) summary.test_loss = evaluate(data_.test, "test", iteration, at_end, observer);
    if (timers_.is_on()) timers_.add("evaluate", seconds_now() - begun);
    return true;
  } catch (const Error& error) {
    // End the run, so that it saves the trained state. With several ranks throw: others may wait in
    // the validation.
    if (error.kind != ErrorKind::Data || assembly_.groups.world().size() > 1) throw;
    summary.ending = ExitReason::BadData;
    summary.reason = error.what();
    return false;
  }
}

std::optional<double> TrainLoop::evaluate(const HeldSamples& held, std::string_view split,
                                          int64_t iteration, bool at_end,
                                          const TrainObserver& observer) {
  const int64_t wanted = assembly_.config.eval.iterations;
  if (held.samples == nullptr || wanted == 0) return std::nullopt;
  const double start = seconds_now();
  const int64_t samples =
      wanted > held.count / batch_.global_batch ? held.count : wanted * batch_.global_batch;
  // A function of the iteration, so that a resumed run evaluates the same samples.
  const EvalConfig& eval = assembly_.config.eval;
  const int64_t done = eval.interval > 0 ? iteration / eval.interval - (at_end ? 0 : 1) : 0;
  const bool is_test = &held == &data_.test;
  const int64_t first = held.goes_on && !is_test ? std::max<int64_t>(0, done) * samples : 0;
  // Poll: a validation can take longer than the sender of a signal waits.
  const auto goes_on = [&] {
    const RunRequests requests = observer.poll_requests();
    return all_reduce_max(requests.signal != 0 || requests.stop ? 1 : 0) == 0;
  };
  const auto sum = evaluation_.run_while(goes_on, *held.samples, first, samples);
  if (!sum) return std::nullopt;
  const Validation validation{.iteration = iteration,
                              .split = split,
                              .at_end = at_end,
                              .samples = samples,
                              .loss = sum->loss / std::max(sum->weight, 1.0),
                              .seconds = seconds_now() - start};
  observer.validation(validation);
  return validation.loss;
}

}  // namespace bev
