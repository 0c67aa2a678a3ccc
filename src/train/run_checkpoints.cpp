#include "train/run_checkpoints.h"

#include <ctime>
#include <optional>

#include "base/check.h"
#include "checkpoint/retention.h"
#include "config/config_diff.h"
#include "ops/make_device.h"
#include "optim/lr_schedule_config.h"
#include "train/gather_model.h"
#include "train/resume.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

Manifest common_manifest(const TrainingState& state, const RunCheckpoints::Setup& setup) {
  Manifest manifest;
  // The seed of dropout, which a resumed run takes from the checkpoint.
  manifest.seed = static_cast<uint64_t>(state.config.train.seed);
  manifest.config = stored_config(setup.config);
  store_schedule(setup.schedule, manifest.config);
  if (setup.config.checkpoint.save_optimizer)
    manifest.optimizer = name_of_choice(setup.config.optim.kind);
  manifest.parameters = setup.parameters;
  manifest.history = setup.history;
  return manifest;
}

std::optional<Manifest> readable_manifest(const fs::path& checkpoint) {
  try {
    return read_manifest(checkpoint);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

fs::path save_folder(const Config& config) {
  const CheckpointConfig& c = config.checkpoint;
  if (!c.save.empty()) return c.save;
  const bool wanted = c.interval > 0 || !c.schedule.empty();
  return wanted && !config.train.output.empty() ? fs::path(config.train.output) / "checkpoints"
                                                : fs::path();
}

void check_save_folder(const Config& config, double bytes) {
  const fs::path folder = save_folder(config);
  if (folder.empty()) return;
  const std::string field = format("checkpoint.save {}", folder.string());
  require_writable(field, folder);
  require_disk_space(field, folder, bytes, "a checkpoint takes");
  const std::vector<CheckpointPlace> there = CheckpointFolder(folder).list();
  if (there.empty()) return;
  BEV_CHECK(continues_itself(config), Usage,
            "{} holds checkpoints of an earlier run, up to iteration {}, with which those of this "
            "run would be mixed; --load {}{} continues it, another checkpoint.save (or "
            "train.output) starts from scratch",
            folder.string(), there.back().iteration, folder.string(),
            config.checkpoint.finetune ? " without --finetune" : "");
}

double checkpoint_bytes(const Config& config) {
  const Config whole = single_rank_config(config);
  const std::unique_ptr<Device> device = make_null_device(whole.device);
  const TrainingState state(whole, *device, ArenaSizes{});
  double bytes = 0;
  for (const LocalPiece& held : local_weights(state.params))
    bytes += static_cast<double>(held.piece.bytes());
  if (!config.checkpoint.save_optimizer) return bytes;
  for (const LocalPiece& held : held_states(state.params, state.optimizer))
    bytes += static_cast<double>(held.piece.bytes());
  return bytes;
}

RunCheckpoints::RunCheckpoints(TrainingState& state, Setup setup)
    : config_(setup.config.checkpoint),
      schedule_(config_),
      manifest_(common_manifest(state, setup)),
      saver_(CheckpointFolder(setup.folder), state.groups.world(), state.params, state.optimizer,
             {.asynchronous = config_.asynchronous,
              .with_optimizer = config_.save_optimizer,
              .bytes = checkpoint_bytes(setup.config),
              .extra_files = {{"config.toml", setup.config_text}},
              .ended = std::move(setup.ended),
              .tidy = [this] { return tidy(); }}) {}

void RunCheckpoints::save(const RunPosition& position) {
  Manifest manifest = manifest_;
  write_position(position, manifest);
  manifest.is_permanent = schedule_.is_permanent(position.iteration);
  manifest.time = static_cast<int64_t>(std::time(nullptr));
  saver_.save(std::move(manifest));
}

std::string RunCheckpoints::tidy() const {
  if (!removes(config_)) return "";
  const CheckpointFolder& folder = saver_.folder();
  std::vector<KeptCheckpoint> good;
  for (const CheckpointPlace& place : folder.list()) {
    if (place.is_release()) continue;
    // A damaged checkpoint is neither counted nor removed: the user can inspect it.
    if (const std::optional<Manifest> manifest = readable_manifest(place.path))
      good.push_back({place.iteration, manifest->valid_loss, manifest->is_permanent});
  }
  std::string problem;
  for (const int64_t iteration : removable(good, config_)) {
    try {
      folder.remove(iteration);
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  return problem;
}

}  // namespace bev
