// bevatron checkpoint prune: removes the checkpoints that a rule does not keep.
#include <algorithm>
#include <array>
#include <cstdio>

#include "app/checkpoint/checkpoint_verbs.h"
#include "app/cli/cli_flags.h"
#include "base/check.h"
#include "checkpoint/retention.h"

namespace bev::app {

namespace {

namespace fs = std::filesystem;

constexpr std::array<VerbFlag, 5> kCheckpointPruneFlags{{
    {"--keep", "N", "how many of the newest good checkpoints stay, at least 1"},
    {"--keep-every", "K", "of the others, those at multiples of K iterations stay too"},
    {"--keep-best", "B", "and the B with the lowest validation loss"},
    {"--damaged", "", "remove those too that cannot be used"},
    {"--dry-run", "", "say what would be removed, and remove nothing"},
}};

CheckpointConfig rule_from(const FlagValues& flags) {
  BEV_CHECK(flags.has("--keep"), Usage,
            "--keep is missing: how many of the newest stay, such as "
            "--keep 3");
  constexpr int64_t kMost = 1'000'000'000'000'000;
  CheckpointConfig rule;
  rule.keep = flags.integer("--keep", 1, 1, kMost);
  rule.keep_every = flags.integer("--keep-every", 0, 0, kMost);
  rule.keep_best = flags.integer("--keep-best", 0, 0, kMost);
  return rule;
}

// What goes, newest first. Weights that no run trained are nobody's to remove, nor is the newest
// good one.
std::vector<const CheckpointInfo*> choose(const std::vector<CheckpointInfo>& all,
                                          const CheckpointConfig& rule, bool with_damaged) {
  const auto is_numbered = [](const CheckpointInfo& found) { return found.name() != "release"; };
  std::vector<KeptCheckpoint> known;
  int64_t newest = -1;
  for (const CheckpointInfo& found : all) {
    if (!found.is_good() || !is_numbered(found)) continue;
    newest = std::max(newest, found.place.iteration);
    known.push_back({.iteration = found.place.iteration,
                     .valid_loss = found.manifest->valid_loss,
                     .is_permanent = found.manifest->is_permanent});
  }
  std::reverse(known.begin(), known.end());  // the oldest first
  const std::vector<int64_t> going = removable(known, rule);
  std::vector<const CheckpointInfo*> chosen;
  for (const CheckpointInfo& found : all) {
    if (!is_numbered(found) || (found.is_good() && found.place.iteration == newest)) continue;
    const bool is_going = found.is_good() ? std::find(going.begin(), going.end(),
                                                      found.place.iteration) != going.end()
                                          : with_damaged;
    if (is_going) chosen.push_back(&found);
  }
  return chosen;
}

}  // namespace

int checkpoint_prune(std::span<const std::string> args) {
  const auto flags = flags_for(
      {.name = "checkpoint prune",
       .summary = "Removes checkpoints of DIR, a folder of checkpoints or a run, that the flags do "
                  "not keep, by the same rule as a training with checkpoint.keep. The newest good "
                  "one, permanent ones and `release` always stay. Asks nothing.",
       .flags = kCheckpointPruneFlags,
       .positional = "DIR",
       .min_positional = 1,
       .max_positional = 1},
      args);
  if (!flags) return 0;
  const fs::path path = flags->positional().front();
  const CheckpointConfig rule = rule_from(*flags);
  BEV_CHECK(!is_checkpoint(path), Usage,
            "{} is one checkpoint; legal is the folder that holds it and others", path.string());
  const std::vector<CheckpointInfo> all = survey(path);
  const bool is_dry_run = flags->has("--dry-run");
  uint64_t bytes = 0;
  size_t removed = 0;
  for (const CheckpointInfo* found : choose(all, rule, flags->has("--damaged"))) {
    if (!is_dry_run)
      CheckpointFolder(found->place.path.parent_path()).remove(found->place.iteration);
    fmt::print("{} {}, {}{}\n", is_dry_run ? "would remove" : "removed", found->place.path.string(),
               as_bytes(static_cast<double>(found->bytes)), found->is_good() ? "" : ", damaged");
    bytes += found->bytes;
    ++removed;
  }
  const auto damaged =
      std::count_if(all.begin(), all.end(), [](const CheckpointInfo& c) { return !c.is_good(); });
  fmt::print("{} of {} checkpoints {}, {} {} free\n", removed, all.size(),
             is_dry_run ? "would go" : "removed", as_bytes(static_cast<double>(bytes)),
             is_dry_run ? "would become" : "became");
  if (damaged > 0 && !flags->has("--damaged"))
    fmt::print("{} cannot be used and stayed; --damaged removes such too\n", damaged);
  return 0;
}

}  // namespace bev::app
