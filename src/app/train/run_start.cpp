#include "app/train/run_start.h"

#include <cstdlib>
#include <ctime>

#include "app/cli/build_info.h"
#include "app/cli/console.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/function_ref.h"
#include "config/resolve.h"
#include "optim/lr_schedule_config.h"
#include "plan/memory_fit.h"
#include "train/bert_weights.h"
#include "train/resume.h"
#include "train/run_checkpoints.h"
#include "train/run_directory.h"

namespace bev::app {

RunInit::RunInit(const Config& config, const ResumePoints& points, Device& device,
                 ProcessGroups& groups, const ArenaSizes& sizes, const Console* console)
    : continuation_{.config = config, .start = {}} {
  for (const CheckpointPlace& place : points.places)
    if (restore_from(place, config, device, groups, sizes, console)) return;
  BEV_CHECK(points.places.empty(), Data,
            "no checkpoint in {} can be used: the data of each are damaged; nothing was changed",
            config.checkpoint.load);
  if (!config.checkpoint.load.empty() && console != nullptr)
    console->log("bevatron: note: there is no checkpoint in {} yet; the run starts anew\n",
                 config.checkpoint.load);
  state_ = std::make_unique<TrainingState>(continuation_.config, device, groups, sizes);
  state_->initialize();
  begin_with_bert(console);
}

void RunInit::begin_with_bert(const Console* console) {
  if (continuation_.config.checkpoint.bert.empty()) return;
  const CheckpointReader bert = open_bert(continuation_.config);
  load_bert(bert, *state_);
  if (console != nullptr)
    console->log("bert      {}: the encoders begin with its weights\n", bert.folder().string());
}

bool RunInit::all_can(Communicator& world, const Console* console, int64_t iteration,
                      FunctionRef<void()> read) {
  std::string damage;
  try {
    read();
  } catch (const Error& error) {
    if (error.kind != ErrorKind::Data) throw;
    damage = error.what();
  }
  if (!damage.empty())
    Console::alert(console, world.rank(),
                   format("the checkpoint of iteration {} cannot be used: {}", iteration, damage));
  return world.all_reduce_max_host(damage.empty() ? 0 : 1) == 0;
}

RunPosition RunInit::roll_back_to(const CheckpointFolder& folder, int64_t most,
                                  const Console* console) {
  Communicator& world = state_->groups.world();
  // Parameters may still be on their way.
  state_->device.comm_stream().synchronize();
  state_->device.compute_stream().synchronize();
  // Which one: the first rank says, since others may see the folder as it was a moment ago.
  for (int64_t below = most + 1;;) {
    int64_t newest = 0;
    if (world.rank() == 0)
      for (const CheckpointPlace& place : folder.list())
        if (!place.is_release() && place.iteration < below) newest = place.iteration;
    newest = world.all_reduce_max_host(newest);
    // How the run took what it began with is not how it takes its own.
    const bool is_start = began_with_ && began_with_->iteration == newest;
    if (newest == 0 || is_start) break;
    below = newest;
    std::optional<CheckpointReader> stored;
    const auto read = [&] {
      stored.emplace(folder.place_of(newest));
      ResumePlan own = continuation_;
      own.with_optimizer = true;
      restore(*stored, own, *state_);
    };
    if (all_can(world, console, newest, read))
      return read_position(stored->manifest(), folder.place_of(newest).string());
  }
  if (!began_with_) {
    state_->reinitialize();
    begin_with_bert(console);
    return {};
  }
  const CheckpointReader stored(began_with_->path);
  // Where only weights are taken, the optimizer starts with nothing.
  state_->reinitialize();
  restore(stored, continuation_, *state_);
  return continuation_.start.position;
}

bool RunInit::restore_from(const CheckpointPlace& place, const Config& config, Device& device,
                           ProcessGroups& groups, const ArenaSizes& sizes, const Console* console) {
  const double start = seconds_now();
  Communicator& world = groups.world();
  std::optional<CheckpointReader> stored;
  if (!all_can(world, console, place.iteration, [&] { stored.emplace(place.path); })) return false;
  const Manifest& manifest = stored->manifest();
  continuation_ = continue_from(manifest, config, place.path.string());
  if (console != nullptr)
    console->log("resume    {}, iteration {}, {} samples{}\n{}", place.path.string(),
                 with_commas(manifest.iteration), with_commas(manifest.consumed_samples),
                 continuation_.start.position.iteration == 0 ? "; only its weights" : "",
                 continuation_.differences);
  state_ = std::make_unique<TrainingState>(continuation_.config, device, groups, sizes);
  // Rows of a padded vocabulary that the checkpoint lacks aside, all of this is overwritten.
  if (!all_can(world, console, place.iteration,
               [&] { restore(*stored, continuation_, *state_); })) {
    state_.reset();
    return false;
  }
  from_ = manifest;
  began_with_ = place;
  if (console != nullptr)
    console->log("          loaded in {}\n", as_duration(seconds_now() - start));
  return true;
}

LrSchedule RunInit::schedule() const {
  const Config& config = continuation_.config;
  return continuation_.start.schedule ? *continuation_.start.schedule
                                      : lr_schedule_from(config, resolve_batch(config).global_batch,
                                                         resolve_iterations(config));
}

std::vector<HistoryEntry> RunInit::history() const {
  std::vector<HistoryEntry> history;
  if (from_) history = from_->history;
  history.push_back({.after_iteration = continuation_.start.position.iteration,
                     .time = static_cast<int64_t>(std::time(nullptr)),
                     .program = format("bevatron {}", program_version()),
                     .layout = describe(layout_of(continuation_.config)),
                     .changes = continuation_.changes});
  return history;
}

Preflight::Preflight(const Config& given, int sharing, bool writes) : config_(given) {
  const Config& config = config_;
  attempt([&] {
    resume_points_ = find_resume_points(given.checkpoint);
    config_ = with_padding_of(resume_points_, given);
    if (resume_points_.places.empty()) {
      if (!config.checkpoint.bert.empty()) open_bert(config);
      return;
    }
    const CheckpointPlace& newest = resume_points_.places.front();
    continue_from(read_manifest(newest.path), config, newest.path.string());
  });
  layout_ = plan_layout(config);
  attempt([&] { require_fit(config, *layout_, sharing); });
  attempt([&] { data_ = open_training_data(config); });
  if (writes) attempt([&] { check_save_folder(config, plan().checkpoint_bytes); });
  const size_t model_bytes = static_cast<size_t>(plan().model_parameters) * size_of(plan().dtype);
  if (writes && !config.train.output.empty())
    attempt([&] { RunDirectory(config.train.output).check(config, model_bytes); });
}

void Preflight::require() const {
  if (problems_.empty()) return;
  if (problems_.size() == 1) throw Error(problems_.front());
  std::string list = format("{} problems", problems_.size());
  for (size_t i = 0; i < problems_.size(); ++i)
    list += format("\n{}. {}", i + 1, problems_[i].what());
  throw Error(problems_.front().kind, list);
}

void Preflight::attempt(FunctionRef<void()> look) {
  try {
    look();
  } catch (const Error& error) {
    if (error.kind == ErrorKind::Internal) throw;
    problems_.push_back(error);
  }
}

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
    print_stderr(
        "bevatron: note: restart {}: this run continues from its own checkpoints in {}, not from "
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
