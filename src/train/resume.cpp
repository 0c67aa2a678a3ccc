#include "train/resume.h"

#include <algorithm>

#include "base/check.h"
#include "checkpoint/restore.h"
#include "config/config_diff.h"
#include "config/resolve.h"
#include "convert/checkpoint_weights.h"
#include "optim/lr_schedule_config.h"
#include "train/run_checkpoints.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

constexpr const char* kAside = "set-aside";

// Also of folders that are not there yet.
bool is_same_folder(const fs::path& a, const fs::path& b) {
  std::error_code error, other_error;
  const fs::path one = fs::weakly_canonical(fs::absolute(a) / ".", error);
  const fs::path other = fs::weakly_canonical(fs::absolute(b) / ".", other_error);
  return !error && !other_error && one == other;
}

// What other programs call a model is not taken for an empty folder.
void refuse_foreign(const CheckpointConfig& c, const std::vector<CheckpointPlace>& there) {
  std::error_code ignored;
  const fs::path load = c.load;
  BEV_CHECK(!there.empty() || !fs::exists(load / "config.json", ignored), Usage,
            "checkpoint.load {}: this is a model in Hugging Face's format; `bevatron convert "
            "hf-to-bev {} FOLDER` makes a checkpoint of it, which --load FOLDER begins with",
            c.load, c.load);
  for (const CheckpointPlace& place : there) {
    BEV_CHECK(!fs::exists(place.path / "mp_rank_00", ignored) &&
                  !fs::exists(place.path / "mp_rank_00_000", ignored),
              Usage,
              "checkpoint.load {}: {} is of Megatron-LM; tools/megatron_export.py and `bevatron "
              "convert megatron-to-bev` make a checkpoint of it",
              c.load, place.path.filename().string());
  }
}

void require_existence(const CheckpointConfig& c, const std::vector<CheckpointPlace>& there) {
  BEV_CHECK(!there.empty() || (!c.must_exist && c.step == 0), Data,
            "there is no checkpoint {}in {}; without checkpoint.must_exist and checkpoint.step the "
            "run would start anew",
            c.step > 0 ? format("of iteration {} ", c.step) : "", c.load);
}

}  // namespace

ResumePoints find_resume_points(const CheckpointConfig& c) {
  if (c.load.empty()) return {};
  std::vector<CheckpointPlace> there = find_checkpoints(c.load);
  refuse_foreign(c, there);
  if (c.step > 0)
    std::erase_if(there, [&](const CheckpointPlace& place) { return place.iteration != c.step; });
  require_existence(c, there);
  ResumePoints points;
  std::string problems;
  for (const CheckpointPlace& place : there) {
    // Older ones are opened where the newest good one turns out to be damaged.
    if (!points.places.empty()) {
      points.places.push_back(place);
      continue;
    }
    try {
      const CheckpointReader stored(place.path);
      points.places.push_back(place);
      if (points.padded_vocab == 0) points.padded_vocab = stored_vocab_rows(stored);
    } catch (const Error& error) {
      if (error.kind != ErrorKind::Data) throw;
      problems += format("\n  {}", error.what());
      points.alerts.push_back(format("the checkpoint of iteration {} cannot be used: {}",
                                     place.iteration, error.what()));
    }
  }
  BEV_CHECK(there.empty() || !points.places.empty(), Data,
            "no checkpoint in {} can be used:{}\n  nothing was changed; without checkpoint.load a "
            "run starts anew",
            c.load, problems);
  return points;
}

Config with_padding_of(const ResumePoints& points, Config config) {
  const int64_t tensor = config.parallel.tensor, rows = points.padded_vocab;
  const bool is_same =
      padded_vocab(config.model.vocab, config.model.vocab_multiple, tensor) == rows;
  if (!is_same && rows >= config.model.vocab && rows % tensor == 0)
    config.model.vocab_multiple = rows / tensor;
  return config;
}

ResumePlan continue_from(const Manifest& manifest, const Config& config,
                         const std::string& source) {
  const CheckpointConfig& c = config.checkpoint;
  // Weights that no run of ours trained have no place to go on from.
  const bool anew = c.finetune || (manifest.iteration == 0 && manifest.update.empty());
  const bool with_optimizer = c.load_optimizer && !anew;
  BEV_CHECK(!with_optimizer || !manifest.optimizer.empty(), Usage,
            "{} holds weights only, with which no run can go on where another ended; --finetune "
            "begins a new one with them, --no-load-optim keeps iteration and samples",
            source);
  ResumePlan result{.config = config, .start = {}, .with_optimizer = with_optimizer};
  const ConfigDiff diff = diff_config(manifest.config, config, source);
  CheckpointConfig policy = c;
  policy.finetune = anew;
  require_resumable(diff, policy, source);
  result.differences = describe(diff, anew);
  for (const ConfigChange& change : diff.changes) result.changes.push_back(change.text());
  if (anew) return result;
  if (c.load_random) result.config.train.seed = static_cast<int64_t>(manifest.seed);
  result.start.position = read_position(manifest, source);
  if (result.start.position.update && scaling_from(config).adapts &&
      !scaling_from(config_from(manifest.config, source)).adapts) {
    // A constant scale says nothing about one that adapts.
    std::array<double, kUpdateStates> fresh{};
    reset_update_state(scaling_from(config), fresh.data());
    for (const int state : {kLossScale, kStepsWithoutOverflow, kHysteresisLeft})
      (*result.start.position.update)[static_cast<size_t>(state)] =
          fresh[static_cast<size_t>(state)];
  }
  if (!with_optimizer) {
    // The loss scale stays, the schedule and what Adam counts start anew, as in Megatron-LM.
    if (result.start.position.update) {
      (*result.start.position.update)[kAppliedSteps] = 0;
      (*result.start.position.update)[kScheduledSamples] = 0;
    }
    return result;
  }
  const ResumedLrSchedule schedule = resumed_schedule(manifest.config, config, source);
  result.start.schedule = schedule.spec;
  for (const std::string& change : schedule.changes) {
    result.changes.push_back(change);
    result.differences += format("the schedule changes: {}\n", change);
  }
  return result;
}

void restore(const CheckpointReader& stored, const ResumePlan& continuation, TrainingState& state) {
  const int64_t vocab = state.shape.vocab;
  if (continuation.with_optimizer) {
    restore_state(stored, state.params, state.optimizer, vocab);
  } else {
    restore_weights(stored, state.params, state.optimizer, vocab);
  }
}

std::string set_aside_later_checkpoints(const CheckpointFolder& folder, int64_t iteration) {
  const fs::path aside = folder.root() / kAside;
  std::vector<int64_t> moved;
  for (const CheckpointPlace& place : folder.list()) {
    if (place.iteration <= iteration) continue;
    std::error_code error;
    fs::create_directories(aside, error);
    fs::path target = aside / place.path.filename();
    for (int number = 2; fs::exists(target, error); ++number)
      target = aside / format("{}-{}", place.path.filename().string(), number);
    fs::rename(place.path, target, error);
    BEV_CHECK(!error, Data, "cannot move {} to {}: {}", place.path.string(), target.string(),
              error.message());
    moved.push_back(place.iteration);
  }
  if (moved.empty()) return "";
  return format("{} now in {}: this run takes another course",
                moved.size() == 1
                    ? format("the checkpoint of a later iteration ({}) is", moved.front())
                    : format("the checkpoints of later iterations ({} to {}) are", moved.front(),
                             moved.back()),
                aside.string());
}

bool continues_itself(const Config& config) {
  const CheckpointConfig& c = config.checkpoint;
  const fs::path folder = save_folder(config);
  if (folder.empty() || c.load.empty() || c.finetune) return false;
  return is_same_folder(c.load, folder) ||
         is_same_folder(fs::path(c.load) / "checkpoints", folder) ||
         (is_checkpoint(c.load) && is_same_folder(fs::path(c.load) / "..", folder));
}

bool continues_output(const Config& config) {
  const CheckpointConfig& c = config.checkpoint;
  if (c.load.empty() || c.finetune || config.train.output.empty()) return false;
  if (continues_itself(config)) return true;
  std::error_code error;
  const fs::path inside = fs::relative(c.load, config.train.output, error);
  return !error && !inside.empty() && *inside.begin() != "..";
}

}  // namespace bev
