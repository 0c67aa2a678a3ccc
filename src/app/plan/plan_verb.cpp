// bevatron plan: parameters, memory and arithmetic of a configuration, without running it.
#include <array>
#include <cstdio>

#include "app/cli/console.h"
#include "app/cli/verb_config.h"
#include "app/cli/verbs.h"
#include "base/file.h"
#include "base/format.h"
#include "config/presets.h"
#include "pipeline/schedule.h"
#include "pipeline/schedule_timeline.h"
#include "plan/memory_fit.h"
#include "plan/plan_report.h"

namespace bev::app {

namespace {

constexpr std::array<VerbFlag, 6> kPlanFlags{{
    {"--world-size", "N", "plan for N ranks, whatever this machine has (parallel.ranks)",
     "parallel.ranks"},
    {"--rank", "R", "whose parameters, memory and activations are listed; 0 unless given"},
    {"--timeline", "[FILE.svg]", "draw the pipeline's schedule instead: as text, or into the file"},
    {"--json", "", "print JSON with stable keys instead of tables"},
    {"--list-presets", "", "print the names of all model presets and stop"},
    {"--check-memory", "", "fail when the run does not fit this machine, and say what would"},
}};

void draw_timeline(const Config& config, const std::string& file) {
  const int64_t micros = resolve_batch(config).micros;
  const ParallelLayout layout = layout_of(config);
  const PipelineShape shape = pipeline_shape(config, micros);
  const std::vector<Program> programs = step_schedule(config, micros);
  if (file.empty()) {
    fmt::print("{}", render_text(programs, shape));
    return;
  }
  AtomicFile out(file);
  out.write(render_svg(programs, shape, {},
                       format("{}, {} micro-batches: {}", name_of_choice(schedule_kind(config)),
                              micros, describe(layout))));
  out.commit();
  print_stderr("wrote {}\n", file);
}

}  // namespace

int plan(std::span<const std::string> args) {
  for (const std::string& arg : args) {
    if (arg != "--list-presets") continue;
    fmt::print("{}", preset_list());
    return 0;
  }
  const auto loaded = config_for({.name = "plan",
                                  .summary = "Says what a run would take: parameters by module, "
                                             "memory by purpose to the byte, FLOP per token and "
                                             "step, for any number of ranks. Allocates nothing, at "
                                             "any size.",
                                  .own = kPlanFlags},
                                 args);
  if (!loaded) return 0;
  const Config& config = loaded->config;
  if (loaded->has("--timeline")) {
    draw_timeline(config, loaded->own_text("--timeline"));
    return 0;
  }
  const int64_t rank = own_integer(*loaded, "--rank", 0, 0, layout_of(config).world() - 1);
  const LayoutPlan planned = plan_layout(config, static_cast<int>(rank));
  fmt::print("{}", loaded->has("--json") ? plan_json(planned) + "\n" : plan_table(planned));
  // A GPU each; the memory of a machine belongs to all.
  if (loaded->has("--check-memory"))
    require_fit(config, planned, config.device.kind == DeviceKind::Cuda ? 1 : kAllRanks);
  return 0;
}

}  // namespace bev::app
