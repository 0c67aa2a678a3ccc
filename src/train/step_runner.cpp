#include "train/step_runner.h"

#include <algorithm>

#include "base/check.h"
#include "device/device.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/update.h"

namespace bev {

LossScaling scaling_from(const Config& config) {
  const LossConfig& l = config.loss;
  if (l.scale > 0) return {.initial = l.scale};
  if (resolve_dtype(config) != DType::f16) return {};
  return {.initial = l.initial_scale,
          .minimum = l.min_scale,
          .adapts = true,
          .window = l.scale_window,
          .hysteresis = l.hysteresis};
}

namespace {

SpikeRule spike_rule(OnSpike policy, double deviations) {
  return {.deviations = policy == OnSpike::Ignore ? 0 : deviations,
          .rejects = policy > OnSpike::Log,
          .halts = policy > OnSpike::Skip};
}

}  // namespace

UpdateRule update_rule_from(const Config& config, const LrSchedule& schedule) {
  const GuardConfig& guard = config.guard;
  return {.max_norm = config.optim.clip,
          .halts = guard.nonfinite != OnNonFinite::Skip,
          .loss_spike = spike_rule(guard.loss_spike, guard.loss_deviations),
          .norm_spike = spike_rule(guard.norm_spike, guard.norm_deviations),
          .window = static_cast<double>(guard.window),
          .warmup = static_cast<double>(guard.warmup),
          .scaling = scaling_from(config),
          .schedule = schedule};
}

StepRunner::StepRunner(TrainingState& training, const LrSchedule& schedule)
    : training_(training),
      rule_(update_rule_from(training.config, schedule)),
      scalars_(training.device, (1 + kUpdateStates + kUpdateDecisions) * sizeof(double),
               "scalars") {
  const auto at = [&](int64_t begin, int64_t count) {
    std::byte* data = scalars_.data();
    if (data != nullptr) data += static_cast<size_t>(begin) * sizeof(double);
    return tensor_over(data, DType::f64, {count});
  };
  norm_squared_ = at(0, 1);
  state_ = at(1, kUpdateStates);
  decision_ = at(1 + kUpdateStates, kUpdateDecisions);
  rule_.losses = static_cast<int>(training.spec.losses.size());
  rule_.loss_weights = loss_weights(training.spec.losses);
  training_.executor.set_loss_scale(slice(state_, 0, kLossScale, 1));
  if (training_.device.kind() == DeviceKind::Null) return;
  if (training_.groups.world().size() > 1) {
    waits_.emplace(training_.device);
    training_.executor.set_wait_timer(&*waits_);
  }
  reports_ = PinnedBuffer(training_.device, kMostInFlight * sizeof(Report));
  double start[kUpdateStates];
  reset_update_state(rule_.scaling, start);
  training_.device.upload(start, state_.data, sizeof start);
}

std::array<double, kUpdateStates> StepRunner::state() const {
  BEV_CHECK(in_flight() == 0, Internal, "{} steps are in flight", in_flight());
  std::array<double, kUpdateStates> state{};
  training_.device.download(state_.data, state.data(), sizeof state);
  return state;
}

void StepRunner::resume(std::array<double, kUpdateStates> state) {
  if (!rule_.scaling.adapts) state[kLossScale] = rule_.scaling.initial;
  training_.device.upload(state.data(), state_.data, sizeof state);
  applied_steps_ = static_cast<int64_t>(state[kAppliedSteps]);
  scheduled_samples_ = static_cast<int64_t>(state[kScheduledSamples]);
}

void StepRunner::set_lr_scale(double factor) {
  std::array<double, kUpdateStates> changed = state();
  changed[kLrScale] = factor;
  training_.device.upload(changed.data(), state_.data, sizeof changed);
}

void StepRunner::recompute(std::span<const HostBatch> batches) {
  BEV_CHECK(in_flight() == 0, Internal, "{} steps are in flight", in_flight());
  Exec ex = training_.executor.exec();
  training_.reducer.begin_step(ex);
  training_.executor.train(batches);
  training_.reducer.reduce(ex);
  training_.param_gather.invalidate(ex);
  ex.stream.synchronize();
}

StepRunner::Report* StepRunner::report(int64_t number) const {
  return reinterpret_cast<Report*>(reports_.data()) + number % kMostInFlight;
}

void StepRunner::autotune(std::span<const HostBatch> batches) {
  BEV_CHECK(in_flight() == 0, Internal, "autotuning while {} steps are in flight", in_flight());
  if (!training_.device.is_asynchronous()) return;
  // The second one adds where the first overwrites.
  const auto some = batches.first(std::min<size_t>(2, batches.size()));
  AutotuneScope autotune(training_.device);
  Exec ex = training_.executor.exec();
  training_.reducer.begin_step(ex);
  training_.executor.train(some);
  ex.stream.synchronize();
  autotune.finish();
}

void StepRunner::submit(std::span<const HostBatch> batches) {
  BEV_CHECK(in_flight() < kMostInFlight, Internal, "{} steps are in flight", in_flight());
  UpdateRule rule = rule_;
  const int sharing = training_.groups.layout().data;
  for (const HostBatch& batch : batches) rule.samples += batch.sequences * sharing;
  Ticket& ticket = tickets_[static_cast<size_t>(submitted_ % kMostInFlight)];
  if (waits_) waits_->next_step();
  Exec ex = training_.executor.exec();
  ticket.begun = TimerEvent(training_.device, ex.stream);
  training_.reducer.begin_step(ex);
  training_.executor.train(batches);
  const bool is_timed = training_.config.log.timing > 0;
  if (is_timed) ticket.trained = TimerEvent(training_.device, ex.stream);

  const Tensor loss = training_.executor.loss_sums();
  Communicator& all = training_.groups.over({Axis::Context, Axis::Data, Axis::Pipeline});
  if (all.size() > 1) all.all_reduce(ex, loss);
  training_.reducer.reduce(ex);
  if (is_timed) ticket.reduced = TimerEvent(training_.device, ex.stream);
  training_.reducer.squared_norm(ex, norm_squared_);
  ops::decide_update(ex, {.norm_squared = norm_squared_,
                          .loss = loss,
                          .rule = rule,
                          .state = state_,
                          .decision = decision_});
  training_.optimizer.step(ex, decision_);
  training_.param_gather.invalidate(ex);

  ticket.samples = rule.samples;
  if (reports_.data() != nullptr) {
    Report* to = report(submitted_);
    const auto back = [&](const ConstTensor& from, void* host) {
      training_.device.download_on(ex.stream, from.data, static_cast<std::byte*>(host),
                                   bytes_of(from));
    };
    back(loss, to->losses.data());
    back(decision_, to->decision);
    ticket.done = TimerEvent(training_.device, ex.stream);
  }
  ++submitted_;
}

StepResult StepRunner::collect() {
  BEV_CHECK(in_flight() > 0, Internal, "no step is in flight");
  Ticket& ticket = tickets_[static_cast<size_t>(collected_ % kMostInFlight)];
  ++collected_;
  if (reports_.data() == nullptr) return {};
  // Waits for the step: its report is there afterwards.
  const double seconds =
      ticket.done.seconds_since(last_done_.present() ? last_done_ : ticket.begun);
  PhaseSeconds times;
  if (ticket.trained.present())
    times = {.forward_backward = ticket.trained.seconds_since(ticket.begun),
             .gradients = ticket.reduced.seconds_since(ticket.trained),
             .optimizer = ticket.done.seconds_since(ticket.reduced)};
  last_done_ = std::move(ticket.done);
  const double waited = waits_ ? waits_->take() : 0;
  const Report& r = *report(collected_ - 1);
  const bool applied = r.decision[kApplied] != 0;
  if (applied) {
    ++applied_steps_;
    scheduled_samples_ += ticket.samples;
  }
  const std::vector<LossSpec>& losses = training_.spec.losses;
  return {.loss = total_loss(losses, r.losses),
          .losses = LossMeans(losses, r.losses),
          .grad_norm = r.decision[kNorm],
          .lr = r.decision[kRate],
          .next_lr = r.decision[kNextRate],
          .loss_scale = r.decision[kUsedScale],
          .seconds = seconds,
          .waited = waited,
          .times = times,
          .applied = applied,
          .findings = static_cast<int>(r.decision[kFindings]),
          .loss_limit = r.decision[kLossLimit],
          .norm_limit = r.decision[kNormLimit]};
}

}  // namespace bev
