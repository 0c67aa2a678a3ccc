#include "train/train_loop.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "base/process.h"
#include "comm/communicator.h"

namespace bev {

namespace {

// Iterations of the whole training. With train.samples: the iterations done, and those that the
// remaining samples need, since the batch size may have changed.
int64_t iterations_from(const Config& config, const RunPosition& start) {
  if (config.train.samples == 0) return resolve_iterations(config);
  return start.iteration +
         resolve_batch_schedule(config).steps_in(config.train.samples, start.consumed_samples);
}

DataLoader::Position place_of(const RunPosition& position) {
  return {.position = position.data_position, .consumed = position.consumed_samples};
}

// The requests to one rank, and why the run ends, as one number; ranks agree on the largest number.
// Control files, which only rank 0 sees, have the highest bits. Signals have the lowest: a signal
// that loses is still set at the next step.
int64_t pack(ExitReason ending, const RunRequests& requests) {
  const int64_t files = (requests.stop ? 8 : 0) | (requests.save ? 4 : 0) |
                        (requests.evaluate ? 2 : 0) | (requests.rate ? 1 : 0);
  return files << 16 | static_cast<int64_t>(ending) << 8 | int64_t{requests.signal & 0xff};
}

}  // namespace

TrainLoop::TrainLoop(TrainingState& state, TrainingData data, const TrainStart& start,
                     TrainLog& log, Checkpointing* checkpoints,
                     std::function<RunRequests()> poll_requests)
    : state_(state),
      data_(std::move(data)),
      log_(log),
      checkpoints_(checkpoints),
      poll_requests_(std::move(poll_requests)),
      batch_(resolve_batch(state.config)),
      iterations_(iterations_from(state.config, start.position)),
      start_(start.position),
      evaluation_(state.executor, batch_, state.spec.batch, state.groups.coordinate(Axis::Data),
                  state.groups.layout().data),
      stepper_(state, start.schedule
                          ? *start.schedule
                          : lr_schedule_from(state.config, batch_.global_batch, iterations_)),
      guards_(state, stepper_, data_.train, checkpoints),
      timers_(state.config.log),
      ahead_(state.device.is_asynchronous() ? 1 : 0) {
  summary_.planned = iterations_;
  start_at(start_);
}

void TrainLoop::start_at(const RunPosition& position) {
  guards_.skip(position.skipped);
  const SampleRanges skipped = guards_.all_skipped();
  loader_.emplace(
      data_.train,
      DataLoader::shape_of(state_.config, state_.spec.batch, state_.groups.coordinate(Axis::Data)),
      place_of(position), skipped);
  if (position.update) stepper_.resume(*position.update);
  summary_.iterations = saved_ = position.iteration;
  next_ = position.iteration + 1;
  place_ = place_of(position);
}

bool TrainLoop::is_eval_due(int64_t iteration) const {
  const EvalConfig& eval = state_.config.eval;
  return eval.interval > 0 && iteration % eval.interval == 0 && iteration < iterations_;
}

std::optional<std::span<const HostBatch>> TrainLoop::read() {
  std::span<const HostBatch> batches;
  std::string failure;
  const double begin = seconds_now();
  try {
    batches = loader_->next();
  } catch (const Error& error) {
    if (error.kind != ErrorKind::Data) throw;
    failure = error.what();
  }
  if (timers_.is_on()) timers_.add("batch-generator", seconds_now() - begin);
  // The last rank that failed, counted from 1.
  const int64_t failed = all_reduce_max(failure.empty() ? 0 : state_.groups.world().rank() + 1);
  if (failed == 0) return batches;
  summary_.ending = ExitReason::BadData;
  Communicator& world = state_.groups.world();
  const auto rank = static_cast<int>(failed - 1);
  const std::string reason = broadcast_text(world, failure, rank);
  summary_.reason = world.size() > 1 ? format("rank {}: {}", rank, reason) : reason;
  return std::nullopt;
}

void TrainLoop::issue(const SubmittedStep& step, std::span<const HostBatch> batches) {
  const LogConfig& config = state_.config.log;
  const Communicator& world = state_.groups.world();
  const bool is_traced = !config.trace.empty() && world.rank() == 0;
  // Communication that begins at the end of an iteration ends in the next iteration.
  const int64_t last = config.trace_iteration + (world.size() > 1 ? 1 : 0);
  if (is_traced && step.iteration == config.trace_iteration) trace_.emplace(state_.device);
  std::optional<Trace> ops;
  if (!trace_ && timers_.wants_ops()) ops.emplace(state_.device);
  if (trace_ || ops) state_.executor.trace_into(trace_ ? &*trace_ : &*ops);
  stepper_.submit(batches);
  if (ops) {
    state_.executor.trace_into(nullptr);
    timers_.add(ops->spans());
  }
  if (!trace_ || (step.iteration < last && step.iteration < iterations_)) return;
  state_.executor.trace_into(nullptr);
  log_.trace(trace_->chrome_json());
  trace_.reset();
}

bool TrainLoop::collect(size_t left) {
  while (in_flight_.size() > left) {
    const SubmittedStep step = in_flight_.front();
    in_flight_.pop_front();
    report(step, stepper_.collect());
    // The device did not apply the steps after a halted one.
    if (guards_.is_halted()) {
      while (stepper_.in_flight() > 0) stepper_.collect();
      in_flight_.clear();
    }
    // No step may be in flight when bad steps are explained.
    if (guards_.has_events()) left = 0;
  }
  if (guards_.has_events()) {
    for (const GuardEvent& event : guards_.take_events()) {
      if (event.is_explained) pause();
      log_.event(event);
    }
  }
  return !guards_.is_halted();
}

void TrainLoop::report(const SubmittedStep& step, const StepResult& result) {
  last_time_ = seconds_now();
  pace_.iteration_done(last_time_);
  const double tokens = static_cast<double>(step.samples() * batch_.tokens_per_sample());
  tokens_ += tokens;
  if (step.iteration == start_.iteration + 1) summary_.first_loss = result.loss;
  ++summary_.ran;
  summary_.last_loss = result.loss;
  summary_.skipped += result.applied ? 0 : 1;
  if (timers_.is_on()) timers_.add(result);
  log_.iteration({.iteration = step.iteration,
                  .iterations = iterations_,
                  .samples = step.end.consumed,
                  .batch = step.samples(),
                  .result = result,
                  .seconds = result.seconds,
                  .tokens_per_second = tokens / result.seconds,
                  .seconds_left = pace_.seconds_for(iterations_ - step.iteration)});
  if (!guards_.accept(step, result)) return;
  summary_.iterations = step.iteration;
  place_ = step.end;
  loss_ = result.loss;
}

bool TrainLoop::recover_from_step() {
  const GuardPolicy::Recovery recovery = guards_.recover_from_step();
  return recover(recovery, recovery.event.is_spike ? ExitReason::Spike : ExitReason::NonFinite);
}

bool TrainLoop::recover_from_corruption(const std::string& difference) {
  return recover(guards_.recover_from_corruption(difference, summary_.iterations, place_),
                 ExitReason::Corruption);
}

bool TrainLoop::recover(const GuardPolicy::Recovery& recovery, ExitReason ending) {
  if (recovery.position) {
    start_at(*recovery.position);
    ++summary_.rollbacks;
  } else {
    summary_.ending = ending;
    summary_.reason = recovery.event.text;
  }
  log_.event(recovery.event);
  pause();
  return recovery.position.has_value();
}

ExitReason TrainLoop::ending_after(int64_t iteration, const DataLoader::Position& place) const {
  const TrainConfig& t = state_.config.train;
  if (t.exit_minutes > 0 && process_seconds() > 60 * t.exit_minutes) return ExitReason::Duration;
  if (t.exit_samples > 0 && place.consumed >= t.exit_samples) return ExitReason::Samples;
  if (t.exit_after > 0 && iteration >= start_.iteration + t.exit_after) return ExitReason::After;
  if (t.exit_interval > 0 && iteration % t.exit_interval == 0) return ExitReason::Interval;
  return ExitReason::Complete;
}

TrainLoop::Agreement TrainLoop::agree(ExitReason here) {
  const RunRequests own = poll_requests();
  if (own.stop) here = ExitReason::Request;
  if (own.signal != 0) here = ExitReason::Signal;
  const int64_t packed = all_reduce_max(pack(here, own));
  const int64_t files = packed >> 16;
  Agreement agreement{.ending = static_cast<ExitReason>(packed >> 8 & 0xff),
                      .requests = {.signal = static_cast<int>(packed & 0xff),
                                   .stop = (files & 8) != 0,
                                   .save = (files & 4) != 0,
                                   .evaluate = (files & 2) != 0}};
  // Non-negative doubles have the same order as their bits.
  if ((files & 1) != 0)
    agreement.requests.rate = std::bit_cast<double>(all_reduce_max(
        own.rate && pack(here, own) == packed ? std::bit_cast<int64_t>(*own.rate) : 0));
  return agreement;
}

void TrainLoop::carry_out(const RunRequests& requests, bool is_saved, bool is_validated) {
  log_.acknowledged(requests, summary_.iterations);
  if (requests.rate) stepper_.set_lr_scale(*requests.rate);
  if (requests.evaluate && !is_validated) validate(false);
  if (requests.save && !is_saved && checkpoints_ != nullptr) save();
  pause();
}

bool TrainLoop::advance() {
  const int64_t iteration = next_;
  const DataLoader::Position begin = loader_->place();
  const auto batches = read();
  if (!batches) {
    if (collect(0)) return false;
    summary_.ending = ExitReason::Complete;
    return recover_from_step();
  }
  if (summary_.ran == 0 && in_flight_.empty()) {
    stepper_.autotune(*batches);
    begin_time_ = last_time_ = seconds_now();
    pace_ = Pace(begin_time_);
  }
  in_flight_.push_back({iteration, begin, loader_->place()});
  issue(in_flight_.back(), *batches);
  if (timers_.is_on()) timers_.count_iteration();
  ++next_;
  const bool is_validated = is_eval_due(iteration), is_last = iteration == iterations_;
  const bool is_saved = checkpoints_ != nullptr && checkpoints_->is_due(iteration);
  const bool is_checked = guards_.is_check_due(iteration, is_last || is_saved);
  if (!collect(is_validated || is_last || is_saved || is_checked ? 0 : ahead_))
    return recover_from_step();
  if (is_checked) {
    if (const std::string difference = guards_.replica_difference(); !difference.empty())
      return recover_from_corruption(difference);
  }
  if (timers_.is_on() && iteration % state_.config.train.log_interval == 0)
    log_.timers(timers_.take_table(state_.groups.world()));
  if (is_last) return false;
  if (is_validated) {
    if (!validate(false)) return false;
    pause();
  }
  if (is_saved) {
    save();
    pause();
  }
  if (checkpoints_ != nullptr) checkpoints_->poll();
  const auto [ending, requests] = agree(ending_after(iteration, loader_->place()));
  const bool is_requested =
      requests.stop || requests.save || requests.evaluate || requests.rate.has_value();
  if (ending == ExitReason::Complete && !is_requested) return true;
  if (!collect(0)) return recover_from_step();
  if (ending != ExitReason::Complete || requests.save) {
    if (const std::string difference = guards_.replica_difference(); !difference.empty())
      return recover_from_corruption(difference);
  }
  if (is_requested) carry_out(requests, is_saved, is_validated);
  if (ending == ExitReason::Complete) return summary_.ending == ExitReason::Complete;
  summary_.ending = ending;
  summary_.signal = requests.signal;
  return false;
}

void TrainLoop::train() {
  if (state_.config.train.skip_train || next_ > iterations_) return;
  // Requests that arrived before the first step.
  const int64_t limit = state_.config.train.exit_samples;
  const bool has_enough = limit > 0 && start_.consumed_samples >= limit;
  const auto [ending, requests] = agree(has_enough ? ExitReason::Samples : ExitReason::Complete);
  summary_.ending = ending;
  summary_.signal = requests.signal;
  if (requests.stop) log_.acknowledged({.stop = true}, summary_.iterations);
  bool continues = ending == ExitReason::Complete;
  while (continues && next_ <= iterations_) continues = advance();
}

TrainSummary TrainLoop::run() {
  begin_time_ = last_time_ = seconds_now();
  train();
  // Save first: a failure below must not lose the trained weights.
  if (checkpoints_ != nullptr && summary_.ending != ExitReason::Corruption &&
      saved_ != summary_.iterations) {
    const std::string difference =
        summary_.ending >= ExitReason::NonFinite ? guards_.replica_difference() : "";
    if (difference.empty()) {
      save();
    } else {
      summary_.ending = ExitReason::Corruption;
      summary_.reason += format("\n  ranks hold different copies: {}", difference);
    }
  }
  if (checkpoints_ != nullptr) checkpoints_->finish();
  summary_.applied = stepper_.applied_steps();
  summary_.spikes = guards_.spikes();
  summary_.seconds = last_time_ - begin_time_;
  summary_.tokens_per_second = summary_.seconds > 0 ? tokens_ / summary_.seconds : 0;
  if (summary_.ending == ExitReason::Complete) validate(true);
  if (state_.config.train.skip_train && summary_.ending == ExitReason::Complete)
    summary_.ending = ExitReason::Evaluated;
  // Acknowledge a late stop request, so that the next run does not find it.
  if (poll_requests().stop) log_.acknowledged({.stop = true}, summary_.iterations);
  return summary_;
}

void TrainLoop::pause() {
  pace_.pause(seconds_now() - last_time_);
  last_time_ = seconds_now();
  stepper_.pause();
}

void TrainLoop::save() {
  saved_ = summary_.iterations;
  guards_.count_save();
  const bool is_validated = validated_ == summary_.iterations;
  const double begin = seconds_now();
  checkpoints_->save({.iteration = summary_.iterations,
                      .consumed_samples = place_.consumed,
                      .data_position = place_.position,
                      .skipped = guards_.skipped(),
                      .update = stepper_.state(),
                      .loss = loss_,
                      .valid_loss = is_validated ? summary_.valid_loss : std::nullopt});
  if (timers_.is_on()) timers_.add("save-checkpoint", seconds_now() - begin);
}

bool TrainLoop::validate(bool at_end) {
  const int64_t iteration = summary_.iterations;
  const double begin = seconds_now();
  log_.evaluation_began();
  try {
    if (const auto loss = evaluate(data_.valid, "validation", iteration, at_end)) {
      summary_.valid_loss = loss;
      validated_ = iteration;
    }
    if (at_end) summary_.test_loss = evaluate(data_.test, "test", iteration, at_end);
    if (timers_.is_on()) timers_.add("evaluate", seconds_now() - begin);
    return true;
  } catch (const Error& error) {
    // One rank ends the run and saves. With several, the others may wait in a collective.
    if (error.kind != ErrorKind::Data || state_.groups.world().size() > 1) throw;
    summary_.ending = ExitReason::BadData;
    summary_.reason = error.what();
    return false;
  }
}

std::optional<double> TrainLoop::evaluate(const HeldSamples& held, std::string_view split,
                                          int64_t iteration, bool at_end) {
  const EvalConfig& eval = state_.config.eval;
  if (held.samples == nullptr || eval.iterations == 0) return std::nullopt;
  const double begin = seconds_now();
  const int64_t samples = eval.iterations > held.count / batch_.global_batch
                              ? held.count
                              : eval.iterations * batch_.global_batch;
  // The first sample depends only on the iteration, so that a resumed run reads the same samples.
  const int64_t done = eval.interval > 0 ? iteration / eval.interval - (at_end ? 0 : 1) : 0;
  const bool is_test = &held == &data_.test;
  const int64_t first = held.goes_on && !is_test ? std::max<int64_t>(0, done) * samples : 0;
  // A long evaluation ends when a signal or a stop request arrives.
  const auto continues = [&] {
    const RunRequests requests = poll_requests();
    return all_reduce_max(requests.signal != 0 || requests.stop ? 1 : 0) == 0;
  };
  const auto sums = evaluation_.run_while(continues, *held.samples, first, samples);
  if (!sums) return std::nullopt;
  const std::vector<LossSpec>& losses = state_.spec.losses;
  const Validation validation{.iteration = iteration,
                              .split = split,
                              .at_end = at_end,
                              .samples = samples,
                              .loss = total_loss(losses, *sums),
                              .losses = LossMeans(losses, *sums),
                              .seconds = seconds_now() - begin};
  log_.validation(validation);
  return validation.loss;
}

}  // namespace bev
