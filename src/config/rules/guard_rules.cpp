// Rules about what a run watches over.
#include "config/rules/rule.h"

namespace bev {

namespace {

using Found = std::optional<Problem>;

Found rollback_has_checkpoints(const RuleInput& f) {
  const GuardConfig& g = f.config.guard;
  const CheckpointConfig& c = f.config.checkpoint;
  const bool rolls_back = g.nonfinite == OnNonFinite::Rollback ||
                          g.loss_spike == OnSpike::Rollback || g.norm_spike == OnSpike::Rollback ||
                          g.corruption == OnCorruption::Rollback;
  if (!rolls_back || f.purpose != Purpose::Train) return {};
  const bool saves = (c.interval > 0 || !c.schedule.empty()) && c.save_optimizer;
  if (saves) return {};
  return Problem{
      .what = "a guard rolls back, but there are no checkpoints to go back to",
      .where = f.where({"guard.nonfinite", "guard.loss_spike", "guard.norm_spike",
                        "guard.corruption", "checkpoint.interval", "checkpoint.save_optimizer"}),
      .why =
          "rollback continues from the last checkpoint of this run, with the state of "
          "its optimizer",
      .legal =
          "checkpoint.interval N (--save-interval) with save_optimizer; or another "
          "policy, such as skip"};
}

Found hash_has_ranks(const RuleInput& f) {
  if (f.config.guard.corruption == OnCorruption::Stop || f.config.guard.hash_interval > 0)
    return {};
  return Problem{.what = "guard.corruption is given, but nothing looks for it",
                 .where = f.where({"guard.corruption", "guard.hash_interval"}),
                 .why = "weights are compared every guard.hash_interval iterations, and 0 is never",
                 .legal = "guard.hash_interval N, such as 100; or guard.corruption left out"};
}

}  // namespace

std::vector<Rule> guard_rules() {
  return {
      {{"guard.nonfinite", "guard.loss_spike", "guard.norm_spike", "guard.corruption",
        "checkpoint.interval", "checkpoint.schedule", "checkpoint.save_optimizer"},
       rollback_has_checkpoints,
       true},
      {{"guard.corruption", "guard.hash_interval"}, hash_has_ranks, true},
  };
}

}  // namespace bev
