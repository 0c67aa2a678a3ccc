// Checkpointing: the interface of the training loop to checkpoints. RunCheckpoints: when a run
// writes checkpoints, their manifest, and which of them it keeps.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_saver.h"
#include "config/save_schedule.h"
#include "ops/lr_schedule.h"
#include "train/training_state.h"

namespace bev {

// Where a run saves checkpoints; empty: it saves none.
std::filesystem::path save_folder(const Config& config);

// Finds errors that would otherwise appear at the first save. Usage error: the folder holds
// checkpoints of an earlier run that this run does not continue. Data error: the folder cannot be
// written, or its disk has no room for one checkpoint of `bytes`.
void check_save_folder(const Config& config, double bytes);

// Size of a checkpoint on disk, without headers. REQUIRES: a checked configuration that trains.
double checkpoint_bytes(const Config& config);

// All ranks call every function together, between steps.
class Checkpointing {
 public:
  virtual ~Checkpointing() = default;

  // Whether to save after this iteration.
  virtual bool is_due(int64_t iteration) const = 0;
  virtual void save(const RunPosition& position) = 0;
  // Completes an asynchronous save if all ranks have written their files.
  virtual void poll() = 0;
  // Waits for an asynchronous save; whether the last save succeeded.
  virtual bool finish() = 0;
  // Restores the newest good checkpoint of at most this iteration, or the initial state if there is
  // none.
  virtual RunPosition roll_back(int64_t last_iteration) = 0;
};

class RunCheckpoints {
 public:
  struct Setup {
    std::filesystem::path folder;
    const Config& config;  // before it is adapted to a checkpoint
    LrSchedule schedule{};
    std::string config_text{};            // config.toml of the checkpoints
    std::vector<HistoryEntry> history{};  // this run is the last entry
    int64_t parameters = 0;
    std::function<void(const SaveReport&)> ended{};
  };

  // `state` must outlive this.
  RunCheckpoints(TrainingState& state, Setup setup);

  bool is_due(int64_t iteration) const { return schedule_.is_due(iteration); }
  // The next iteration after this one after which a save is due.
  std::optional<int64_t> next_after(int64_t iteration) const {
    return schedule_.next_after(iteration);
  }
  void save(const RunPosition& position);
  void poll() { saver_.poll(); }
  // Waits for an asynchronous save; whether the last save succeeded.
  bool finish() { return saver_.finish(); }

 private:
  std::string tidy() const;

  CheckpointConfig config_;
  SaveSchedule schedule_;
  Manifest manifest_;  // the part that is the same for all checkpoints
  CheckpointSaver saver_;
};

}  // namespace bev
