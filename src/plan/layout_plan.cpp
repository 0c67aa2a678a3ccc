#include "plan/layout_plan.h"

#include <algorithm>
#include <compare>
#include <map>

#include "pipeline/rank_model.h"
#include "pipeline/schedule.h"

namespace bev {

namespace {

// All that memory and work of a stage depend on.
struct StageKind {
  int64_t layers = 0;
  bool has_embedding = false, has_head = false;

  auto operator<=>(const StageKind&) const = default;
};

StageKind kind_of(const StageLayers& range) {
  return {.layers = range.count, .has_embedding = range.has_embedding, .has_head = range.has_head};
}

std::vector<StageLayers> held_by(const Config& config, const ParallelLayout& layout, int stage) {
  std::vector<StageLayers> held;
  held.reserve(static_cast<size_t>(layout.chunks));
  for (int chunk = 0; chunk < layout.chunks; ++chunk)
    held.push_back(stage_layers(config, layout, chunk * layout.pipeline + stage));
  return held;
}

ScheduleReport report_of(const Config& config) {
  const int64_t micros = resolve_batch(config).micros;
  return verify_schedule(step_schedule(config, micros), pipeline_shape(config, micros));
}

// Plans by what a pipeline rank holds, each made once.
class Plans {
 public:
  Plans(const Config& config, const ScheduleReport& schedule)
      : config_(config), layout_(layout_of(config)), schedule_(schedule) {}

  const Plan& of(int rank) {
    std::vector<StageKind> kinds;
    const int stage = layout_.grid().coordinate(rank, Axis::Pipeline);
    for (const StageLayers& range : held_by(config_, layout_, stage))
      kinds.push_back(kind_of(range));
    const auto [found, is_new] = made_.try_emplace(kinds);
    if (is_new) found->second = dry_run(config_, {.rank = rank, .schedule = &schedule_});
    return found->second;
  }

 private:
  const Config& config_;
  ParallelLayout layout_;
  const ScheduleReport& schedule_;
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
                    .held = held_by(config, layout, shown_stage)};
  const int ranks_of_stage = result.ranks_of_stage();
  for (int stage = 0; stage < layout.pipeline; ++stage) {
    const Plan& plan = plans.of(stage * ranks_of_stage);
    const int slots = schedule.slots[static_cast<size_t>(stage)];
    int64_t layers = 0;
    for (const StageLayers& range : held_by(config, layout, stage)) layers += range.count;
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
