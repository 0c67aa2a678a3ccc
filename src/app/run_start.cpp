#include "app/run_start.h"

#include <ctime>

#include "app/build_facts.h"
#include "base/check.h"
#include "base/clock.h"
#include "config/resolve.h"
#include "optim/lr_schedule.h"

namespace bev::app {

RunStart::RunStart(const Config& config, const ResumePoints& points, Device& device, Groups& groups,
                   const ArenaSizes& sizes, const Voice* voice)
    : continuation_{.config = config, .start = {}} {
  for (const CheckpointPlace& place : points.places)
    if (restore_from(place, config, device, groups, sizes, voice)) return;
  BEV_CHECK(points.places.empty(), Data,
            "no checkpoint in {} can be used: the data of each are damaged; nothing was changed",
            config.checkpoint.load);
  if (!config.checkpoint.load.empty() && voice != nullptr)
    voice->tell("bevatron: note: there is no checkpoint in {} yet; the run starts anew\n",
                config.checkpoint.load);
  assembly_ = std::make_unique<Assembly>(continuation_.config, device, groups, sizes);
  assembly_->initialize();
}

bool RunStart::restore_from(const CheckpointPlace& place, const Config& config, Device& device,
                            Groups& groups, const ArenaSizes& sizes, const Voice* voice) {
  const double start = seconds_now();
  Communicator& world = groups.world();
  const StoredCheckpoint stored(place.path);
  continuation_ = continue_from(stored.manifest(), config, place.path.string());
  if (voice != nullptr)
    voice->tell("resume    {}, iteration {}, {} samples{}\n{}", place.path.string(),
                with_commas(stored.manifest().iteration),
                with_commas(stored.manifest().consumed_samples),
                continuation_.start.position.iteration == 0 ? "; only its weights" : "",
                continuation_.differences);
  assembly_ = std::make_unique<Assembly>(continuation_.config, device, groups, sizes);
  // Rows of a padded vocabulary that the checkpoint lacks aside, all of this is overwritten.
  std::string damage;
  try {
    restore(stored, continuation_, *assembly_);
  } catch (const Error& error) {
    if (error.kind != ErrorKind::Data) throw;
    damage = error.what();
  }
  if (!damage.empty())
    Voice::alert(
        voice, world.rank(),
        format("the checkpoint of iteration {} cannot be used: {}", place.iteration, damage));
  const bool is_good = world.largest(damage.empty() ? 0 : 1) == 0;
  if (!is_good) {
    assembly_.reset();
    return false;
  }
  from_ = stored.manifest();
  if (voice != nullptr) voice->tell("          loaded in {}\n", as_duration(seconds_now() - start));
  return true;
}

ScheduleSpec RunStart::schedule() const {
  const Config& config = continuation_.config;
  return continuation_.start.schedule ? *continuation_.start.schedule
                                      : schedule_from(config, resolve_batch(config).global_batch,
                                                      resolve_iterations(config));
}

std::vector<HistoryEntry> RunStart::history() const {
  std::vector<HistoryEntry> history;
  if (from_) history = from_->history;
  history.push_back({.after_iteration = continuation_.start.position.iteration,
                     .time = static_cast<int64_t>(std::time(nullptr)),
                     .program = format("bevatron {}", program_version()),
                     .layout = describe(layout_of(continuation_.config)),
                     .changes = continuation_.changes});
  return history;
}

}  // namespace bev::app
