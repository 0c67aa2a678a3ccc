// The checkpoints that a run writes: when, with what beside the tensors, and which stay.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_saver.h"
#include "config/save_schedule.h"
#include "ops/lr_schedule.h"
#include "train/training_state.h"

namespace bev {

// What a checkpoint takes on disk, without headers. REQUIRES: a checked configuration that trains.
double checkpoint_bytes(const Config& config);

class RunCheckpoints {
 public:
  struct Setup {
    std::filesystem::path folder;
    const Config& config;  // as the user has it
    LrSchedule schedule{};
    std::string config_text{};            // config.toml of the checkpoints
    std::vector<HistoryEntry> history{};  // this run's is the last
    int64_t parameters = 0;
    std::function<void(const SaveReport&)> ended{};
  };

  // The assembly must outlive this.
  RunCheckpoints(TrainingState& assembly, Setup setup);

  bool is_due(int64_t iteration) const { return schedule_.is_due(iteration); }
  // The first iteration above this one after which one is due, if there is any.
  std::optional<int64_t> next_after(int64_t iteration) const {
    return schedule_.next_after(iteration);
  }
  void save(const RunPosition& position);
  void poll() { saver_.poll(); }
  // Waits for what is under way; whether the last save succeeded.
  bool finish() { return saver_.finish(); }

 private:
  std::string tidy() const;

  CheckpointConfig config_;
  SaveSchedule schedule_;
  Manifest manifest_;  // what all have in common
  CheckpointSaver saver_;
};

}  // namespace bev
