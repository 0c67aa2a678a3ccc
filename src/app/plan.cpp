// bevatron plan: parameters, memory and arithmetic of a configuration, without running it.
#include <array>
#include <cstdio>

#include "app/verb_config.h"
#include "app/verbs.h"
#include "base/format.h"
#include "config/presets.h"
#include "plan/fit.h"
#include "plan/report.h"

namespace bev::app {

namespace {

constexpr std::array<OwnFlag, 3> kFlags{{
    {"--json", "", "print JSON with stable keys instead of tables"},
    {"--list-presets", "", "print the names of all model presets and stop"},
    {"--check-memory", "", "fail when the run does not fit this machine, and say what would"},
}};

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
                                             "step. Allocates nothing, at any size.",
                                  .own = kFlags},
                                 args);
  if (!loaded) return 0;
  const Plan planned = dry_run(loaded->config);
  fmt::print("{}", loaded->has("--json") ? plan_json(planned) + "\n" : plan_table(planned));
  if (loaded->has("--check-memory")) require_fit(loaded->config, planned);
  return 0;
}

}  // namespace bev::app
