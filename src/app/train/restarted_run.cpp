#include "app/train/restarted_run.h"

#include <cstdlib>

#include "app/cli/terminal.h"
#include "train/resume.h"

namespace bev::app {

namespace {

int64_t restarts_here(const std::optional<RankEnvironment>& environment) {
  if (environment) return environment->restarts;
  return restarts_of_job([](const char* name) { return std::getenv(name); });
}

}  // namespace

void continue_after_restart(Config& config, Origins& origins,
                            const std::optional<RankEnvironment>& environment) {
  const int64_t restarts = restarts_here(environment);
  const std::filesystem::path folder = save_folder(config);
  if (restarts == 0 || folder.empty()) return;
  CheckpointConfig& c = config.checkpoint;
  const bool begins_elsewhere = !c.load.empty() && (!continues_itself(config) || c.step > 0);
  if (begins_elsewhere && find_checkpoints(folder).empty()) return;
  const bool is_first = !environment || environment->rank == 0;
  if (is_first && begins_elsewhere)
    say("bevatron: note: restart {}: this run continues from its own checkpoints in {}, not from "
        "{}\n",
        restarts, folder.string(), c.load);
  const Origin origin{.kind = OriginKind::Flag, .text = format("restart {}", restarts)};
  for (const char* path : {"checkpoint.load", "checkpoint.finetune", "checkpoint.step"})
    origins[path] = origin;
  c.load = folder.string();
  c.finetune = false;
  c.step = 0;
  // What was not taken from another run is this run's own by now.
  c.load_optimizer = c.load_optimizer || c.save_optimizer;
}

}  // namespace bev::app
