// Saves and rollbacks of a run: log lines, alerts, and what the run status shows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "app/cli/signals.h"
#include "app/train/run_recorder.h"
#include "app/train/run_start.h"
#include "app/train/training_printer.h"
#include "train/run_checkpoints.h"

namespace bev::app {

// A save that fails is an alert, and the run goes on.
class LoggedCheckpoints final : public Checkpointing {
 public:
  // `config_text`: the content of config.toml. `console`: null: the rank prints only alerts. All
  // arguments must outlive this.
  LoggedCheckpoints(const Config& config, const std::string& config_text, int64_t parameters,
                    RunInit& start, const StopSignal& stop, const Console* console);

  bool is_due(int64_t iteration) const override { return checkpoints_.is_due(iteration); }
  void save(const RunPosition& position) override;
  void poll() override { checkpoints_.poll(); }
  bool finish() override { return checkpoints_.finish(); }
  RunPosition roll_back(int64_t last_iteration) override;

  // Where to print log lines and record the run status; null: nowhere.
  void log_to(TrainingPrinter* printer, RunRecorder* recorder) {
    printer_ = printer;
    recorder_ = recorder;
  }
  // The checkpoint of this iteration; absent: it is not the last one that was saved.
  std::optional<std::filesystem::path> of(int64_t iteration) const;
  // The last checkpoint that was saved, or the one that the run started from.
  std::optional<std::filesystem::path> newest() const;
  // Why the last save failed; empty: it succeeded. REQUIRES: finish() was called.
  const std::string& failure() const { return failure_; }

 private:
  void ended(const SaveReport& report);

  RunInit& start_;
  const StopSignal& stop_;
  const Console* console_;
  int rank_;
  std::filesystem::path folder_;
  int64_t iterations_;
  std::string failure_;
  std::optional<int64_t> newest_;  // iteration of the last checkpoint
  TrainingPrinter* printer_ = nullptr;
  RunRecorder* recorder_ = nullptr;
  RunCheckpoints checkpoints_;
};

}  // namespace bev::app
