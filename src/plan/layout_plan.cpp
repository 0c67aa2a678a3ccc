#include "plan/layout_plan.h"

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <tuple>

#include "pipeline/rank_model.h"
#include "pipeline/schedule.h"

namespace bev {

namespace {

// All that memory and work of a stage depend on.
struct StageKind {
  std::vector<std::tuple<size_t, int, std::optional<int>>> parts{};  // kind, hidden state, context
  std::vector<int> inputs{}, outputs{};                              // hidden states

  auto operator<=>(const StageKind&) const = default;
};

StageKind kind_of(const ModelSpec& spec, const PartRange& parts) {
  StageKind kind{.inputs = live_hidden(spec, parts.first), .outputs = live_hidden(spec, parts.end)};
  for (size_t i = parts.first; i < parts.end; ++i)
    kind.parts.emplace_back(spec.parts[i].is.index(), spec.parts[i].hidden, spec.parts[i].context);
  return kind;
}

ScheduleReport report_of(const Config& config) {
  const int64_t micros = resolve_batch(config).micros;
  return verify_schedule(step_schedule(config, micros), pipeline_shape(config, micros));
}

// Plans by what a pipeline rank holds, each made once.
class Plans {
 public:
  Plans(const Config& config, const ScheduleReport& schedule)
      : config_(config),
        layout_(layout_of(config)),
        schedule_(schedule),
        spec_(model_spec(config)),
        stages_(split_stages(spec_, config)) {}

  // The stages of a pipeline rank.
  std::vector<StageParts> held_by(int pipeline_rank) const {
    std::vector<StageParts> held;
    for (int chunk = 0; chunk < layout_.chunks; ++chunk)
      held.push_back(stages_[static_cast<size_t>(chunk * layout_.pipeline + pipeline_rank)]);
    return held;
  }

  const Plan& of(int rank) {
    std::vector<StageKind> kinds;
    for (const StageParts& stage : held_by(layout_.grid().coordinate(rank, Axis::Pipeline)))
      kinds.push_back(kind_of(spec_, stage.parts));
    const auto [found, is_new] = made_.try_emplace(kinds);
    if (is_new) found->second = dry_run(config_, {.rank = rank, .schedule = &schedule_});
    return found->second;
  }

 private:
  const Config& config_;
  ParallelLayout layout_;
  const ScheduleReport& schedule_;
  ModelSpec spec_;
  std::vector<StageParts> stages_;
  std::map<std::vector<StageKind>, Plan> made_;
};

}  // namespace

const RankPlan& LayoutPlan::largest() const {
  return *std::max_element(ranks.begin(), ranks.end(), [](const RankPlan& a, const RankPlan& b) {
    return a.memory_bytes() < b.memory_bytes();
  });
}

const RankPlan& LayoutPlan::smallest() const {
  return *std::min_element(ranks.begin(), ranks.end(), [](const RankPlan& a, const RankPlan& b) {
    return a.memory_bytes() < b.memory_bytes();
  });
}

int64_t LayoutPlan::most_parameters() const {
  int64_t most = 0;
  for (const RankPlan& rank : ranks) most = std::max(most, rank.parameters);
  return most;
}

CommVolume LayoutPlan::most_sent() const {
  CommVolume most;
  for (const RankPlan& rank : ranks) {
    most.tensor = std::max(most.tensor, rank.sent.tensor);
    most.data = std::max(most.data, rank.sent.data);
    most.pipeline = std::max(most.pipeline, rank.sent.pipeline);
    most.scalars = std::max(most.scalars, rank.sent.scalars);
  }
  return most;
}

size_t LayoutPlan::memory_bytes() const {
  size_t total = 0;
  for (const RankPlan& rank : ranks) total += rank.memory_bytes();
  return total * static_cast<size_t>(ranks_of_stage());
}

double LayoutPlan::flops() const {
  double total = 0;
  for (const RankPlan& rank : ranks) total += rank.flops;
  return total * ranks_of_stage();
}

LayoutPlan plan_layout(const Config& config, int rank) {
  const ParallelLayout layout = layout_of(config);
  const ScheduleReport schedule = report_of(config);
  Plans plans(config, schedule);
  const int shown_stage = layout.grid().coordinate(rank, Axis::Pipeline);
  LayoutPlan result{.shown = plans.of(rank),
                    .ranks = {},
                    .schedule = schedule_kind(config),
                    .bubble = schedule.bubble,
                    .held = plans.held_by(shown_stage)};
  const int ranks_of_stage = result.ranks_of_stage();
  for (int stage = 0; stage < layout.pipeline; ++stage) {
    const Plan& plan = plans.of(stage * ranks_of_stage);
    const int slots = schedule.slots[static_cast<size_t>(stage)];
    int64_t layers = 0;
    for (const StageParts& held : plans.held_by(stage)) layers += held.blocks;
    result.ranks.push_back({.stage = stage,
                            .rank = stage * ranks_of_stage,
                            .layers = layers,
                            .parameters = plan.parameters,
                            .slots = slots,
                            .memory = memory_with(plan, slots),
                            .flops = plan.step.flops,
                            .sent = plan.sent});
  }
  return result;
}

}  // namespace bev
