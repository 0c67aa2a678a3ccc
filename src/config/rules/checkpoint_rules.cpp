// Rules about what is kept of a run and what it continues from.
#include "base/format.h"
#include "config/rules/rule.h"
#include "config/save_schedule.h"

namespace bev {

namespace {

using Found = std::optional<Problem>;

Found one_interval(const RuleInput& f) {
  const CheckpointConfig& c = f.config.checkpoint;
  if (c.interval == 0 || c.schedule.empty()) return {};
  return Problem{.what = "the interval between checkpoints is given twice",
                 .where = f.where({"checkpoint.interval", "checkpoint.schedule"}),
                 .why = "the schedule has its own intervals",
                 .legal = "one of the two"};
}

Found schedule_is_phases(const RuleInput& f) {
  const CheckpointConfig& c = f.config.checkpoint;
  if (c.schedule.empty()) return {};
  ParsedPhases parsed = parse_save_phases(c.schedule);
  if (parsed.why.empty()) return {};
  return Problem{.what = "checkpoint.schedule is not a list of phases",
                 .where = f.where({"checkpoint.schedule"}),
                 .why = std::move(parsed.why),
                 .legal = std::string(kLegalSavePhases)};
}

Found exceptions_have_a_rule(const RuleInput& f) {
  const CheckpointConfig& c = f.config.checkpoint;
  if (c.keep > 0 || c.keep_every > 0 || c.keep_best == 0) return {};
  return Problem{.what = "checkpoint.keep_best says what stays, but nothing is removed",
                 .where = f.where({"checkpoint.keep_best", "checkpoint.keep"}),
                 .why = "with keep 0 all checkpoints stay; the best are exceptions from keep",
                 .legal =
                     "checkpoint.keep 1 or more: so many of the newest stay besides; or no "
                     "keep_best"};
}

Found saving_has_a_folder(const RuleInput& f) {
  const CheckpointConfig& c = f.config.checkpoint;
  if ((c.interval == 0 && c.schedule.empty()) || !c.save.empty() || !f.config.train.output.empty())
    return {};
  const std::string_view given = c.interval > 0 ? "checkpoint.interval" : "checkpoint.schedule";
  return Problem{
      .what = "there is no folder for checkpoints",
      .where = f.where({given, "checkpoint.save", "train.output"}),
      .why = "without checkpoint.save they go into the folder of the run, and there is none",
      .legal = "checkpoint.save FOLDER, or train.output FOLDER"};
}

// A field that says how to load.
Found needs_load(const RuleInput& f, bool is_given, std::string_view path) {
  if (!is_given || !f.config.checkpoint.load.empty()) return {};
  return Problem{.what = format("{} is given, but nothing is loaded", path),
                 .where = f.where({path, "checkpoint.load"}),
                 .why = "it says how a run continues from a checkpoint",
                 .legal = format("checkpoint.load FOLDER; or {} left out", path)};
}

Found step_of_load(const RuleInput& f) {
  return needs_load(f, f.config.checkpoint.step > 0, "checkpoint.step");
}
Found must_exist_of_load(const RuleInput& f) {
  return needs_load(f, f.config.checkpoint.must_exist, "checkpoint.must_exist");
}
Found finetune_of_load(const RuleInput& f) {
  return needs_load(f, f.config.checkpoint.finetune, "checkpoint.finetune");
}
Found optimizer_of_load(const RuleInput& f) {
  return needs_load(f, !f.config.checkpoint.load_optimizer, "checkpoint.load_optimizer");
}
Found random_of_load(const RuleInput& f) {
  return needs_load(f, !f.config.checkpoint.load_random, "checkpoint.load_random");
}
Found scheduler_of_load(const RuleInput& f) {
  return needs_load(f, f.config.checkpoint.scheduler != SchedulerSource::Same,
                    "checkpoint.scheduler");
}

}  // namespace

std::vector<Rule> checkpoint_rules() {
  return {
      {{"checkpoint.interval", "checkpoint.schedule"}, one_interval},
      {{"checkpoint.schedule"}, schedule_is_phases},
      {{"checkpoint.keep", "checkpoint.keep_every", "checkpoint.keep_best"},
       exceptions_have_a_rule,
       true},
      {{"checkpoint.interval", "checkpoint.schedule", "checkpoint.save", "train.output"},
       saving_has_a_folder,
       true},
      {{"checkpoint.step", "checkpoint.load"}, step_of_load, true},
      {{"checkpoint.must_exist", "checkpoint.load"}, must_exist_of_load, true},
      {{"checkpoint.finetune", "checkpoint.load"}, finetune_of_load, true},
      {{"checkpoint.load_optimizer", "checkpoint.load"}, optimizer_of_load, true},
      {{"checkpoint.load_random", "checkpoint.load"}, random_of_load, true},
      {{"checkpoint.scheduler", "checkpoint.load"}, scheduler_of_load, true},
  };
}

}  // namespace bev
