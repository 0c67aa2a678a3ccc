#include "train/guard_policy.h"

#include <algorithm>

#include "base/format.h"

namespace bev {

namespace {

// Recomputing every bad step would take longer than training: after an explained step, bad steps of
// this many iterations are not explained.
constexpr int64_t kExplainInterval = 100;

struct Reaction {
  bool stops = false, rolls_back = false, skips_update = false;
};

// Combines the reactions to all findings.
Reaction reaction_to(int findings, const GuardConfig& guard) {
  Reaction reaction;
  if ((findings & (kLossNotFinite | kNormNotFinite)) != 0) {
    reaction.stops = guard.nonfinite == OnNonFinite::Stop;
    reaction.rolls_back = guard.nonfinite == OnNonFinite::Rollback;
    reaction.skips_update = true;
  }
  for (const auto& [finding, on] :
       {std::pair{kLossSpike, guard.loss_spike}, std::pair{kNormSpike, guard.norm_spike}}) {
    if ((findings & finding) == 0) continue;
    reaction.stops = reaction.stops || on == OnSpike::Stop;
    reaction.rolls_back = reaction.rolls_back || on == OnSpike::Rollback;
    reaction.skips_update = reaction.skips_update || on > OnSpike::Log;
  }
  return reaction;
}

bool is_spike(int findings) { return (findings & (kLossSpike | kNormSpike)) != 0; }

// "; its samples are 8 to 11"
std::string samples_text(const SubmittedStep& step, const SampleRanges& skipped) {
  return format("; its samples are {} to {}", skipped.next_outside(step.begin.position),
                step.end.position - 1);
}

}  // namespace

GuardPolicy::GuardPolicy(TrainingState& state, StepRunner& stepper,
                         std::shared_ptr<const Dataset> samples, Checkpointing* checkpoints)
    : state_(state),
      stepper_(stepper),
      checkpoints_(checkpoints),
      diagnosis_(state, stepper, std::move(samples)),
      configured_skips_(parse_sample_ranges(state.config.data.skip).ranges) {
  if (state.config.guard.hash_interval > 0)
    replicas_.emplace(state.params, state.optimizer, state.groups);
}

SampleRanges GuardPolicy::all_skipped() const {
  SampleRanges all = configured_skips_;
  all.add(skipped_);
  return all;
}

bool GuardPolicy::accept(const SubmittedStep& step, const StepResult& result) {
  if (result.findings == 0) return true;
  if (is_spike(result.findings)) ++spikes_;
  const Reaction reaction = reaction_to(result.findings, state_.config.guard);
  if (reaction.stops || reaction.rolls_back) {
    halted_ = BadStep{step, result};
    return false;
  }
  tolerated_.push_back({step, result});
  return true;
}

GuardEvent GuardPolicy::event_of(const BadStep& bad, GuardAction action) const {
  return {.iteration = bad.step.iteration,
          .samples = {bad.step.begin.position, bad.step.end.position},
          .action = action,
          .is_spike = is_spike(bad.result.findings),
          .text = describe_findings(bad.step.iteration, bad.result)};
}

std::vector<GuardEvent> GuardPolicy::take_events() {
  std::vector<GuardEvent> events;
  const SampleRanges skipped = all_skipped();
  for (const BadStep& bad : tolerated_) {
    const bool skips_update = reaction_to(bad.result.findings, state_.config.guard).skips_update;
    GuardEvent event = event_of(bad, skips_update ? GuardAction::Skipped : GuardAction::Logged);
    event.text += skips_update ? "; its update is skipped" : "; training continues";
    event.text += samples_text(bad.step, skipped);
    event.is_explained =
        last_explained_ == 0 || bad.step.iteration >= last_explained_ + kExplainInterval;
    if (event.is_explained) {
      last_explained_ = bad.step.iteration;
      event.text += diagnosis_.explain(bad.step, skipped, bad.result);
    }
    events.push_back(std::move(event));
  }
  tolerated_.clear();
  return events;
}

bool GuardPolicy::is_check_due(int64_t iteration, bool is_saved) const {
  return replicas_ && (is_saved || iteration % state_.config.guard.hash_interval == 0);
}

std::string GuardPolicy::replica_difference() {
  if (!replicas_) return "";
  Exec ex = state_.executor.exec();
  return replicas_->find_difference(ex);
}

GuardPolicy::Recovery GuardPolicy::recover_from_step() {
  const BadStep bad = *halted_;
  halted_.reset();
  const SampleRanges skipped = all_skipped();
  Recovery recovery{event_of(bad, GuardAction::Stopped)};
  GuardEvent& event = recovery.event;
  event.text += samples_text(bad.step, skipped);
  event.text += diagnosis_.explain(bad.step, skipped, bad.result);
  event.is_explained = true;
  if (!reaction_to(bad.result.findings, state_.config.guard).stops)
    recovery.position = roll_back(bad.step.iteration - 1, &bad.step, event.text);
  if (recovery.position) event.action = GuardAction::RolledBack;
  return recovery;
}

GuardPolicy::Recovery GuardPolicy::recover_from_corruption(const std::string& difference,
                                                           int64_t iteration,
                                                           const DataLoader::Position& end) {
  Recovery recovery{
      {.iteration = iteration,
       .samples = {0, end.position},
       .action = GuardAction::Stopped,
       .text =
           format("after iteration {}, with {} samples consumed, ranks hold different copies: {}",
                  iteration, end.consumed, difference)}};
  if (state_.config.guard.corruption == OnCorruption::Rollback)
    recovery.position = roll_back(iteration, nullptr, recovery.event.text);
  if (recovery.position) recovery.event.action = GuardAction::RolledBack;
  return recovery;
}

std::optional<RunPosition> GuardPolicy::roll_back(int64_t last_iteration, const SubmittedStep* bad,
                                                  std::string& text) {
  const GuardConfig& guard = state_.config.guard;
  if (checkpoints_ == nullptr) {
    text += "\n  there are no checkpoints to go back to";
    return std::nullopt;
  }
  const bool is_saved = checkpoints_->finish();
  if (has_saved_ && is_saved) rollbacks_ = 0;
  has_saved_ = false;
  if (++rollbacks_ > guard.rollbacks) {
    text += format("\n  {} rollbacks since the last checkpoint did not help (guard.rollbacks)",
                   guard.rollbacks);
    return std::nullopt;
  }
  const double lr_scale = stepper_.state()[kLrScale];
  RunPosition position = checkpoints_->roll_back(last_iteration);
  if (!position.update) {
    position.update.emplace();
    reset_update_state(scaling_from(state_.config), position.update->data());
  }
  // A learning rate that the user requested since then stays.
  (*position.update)[kLrScale] = lr_scale;
  text += format("\n  rolled back to iteration {}", position.iteration);
  if (bad != nullptr) {
    const int64_t batch = bad->samples();
    const SampleRange range{
        std::max(position.data_position, bad->begin.position - guard.skip_before * batch),
        bad->end.position + guard.skip_after * batch};
    skipped_.add(range);
    text += format(
        "; samples {} to {} are left out from now on (--data.skip {}-{} does it in another run)",
        range.begin, range.end - 1, range.begin, range.end - 1);
  }
  last_explained_ = 0;
  return position;
}

}  // namespace bev
