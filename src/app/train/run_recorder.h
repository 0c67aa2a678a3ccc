// What the first rank writes about a run while it goes on: metrics.jsonl, status.json, event files
// for TensorBoard; and what it reads from the control folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/console.h"
#include "checkpoint/checkpoint_saver.h"
#include "plan/dry_run.h"
#include "report/metrics_writer.h"
#include "report/status_file.h"
#include "report/tensorboard/tensorboard_writer.h"
#include "train/control_folder.h"
#include "train/run_directory.h"

namespace bev::app {

class RunRecorder {
 public:
  // Makes the folder of the run and what is in it from the start; without train.output there is
  // none. Data error. All must outlive this.
  RunRecorder(const Config& config, const Plan& plan, const std::string& config_text,
              const Console& console);

  // Where the training begins: what is there of later iterations is done again.
  void begin(const RunPosition& position);
  void iteration(const Progress& progress, const std::string& slowest);
  void validation(const Validation& validation);
  void evaluating();
  void saving();
  void saved(const SaveReport& report, const std::string& place);
  void event(const GuardEvent& event);
  void rolled_back(int64_t iteration);
  // How it ended: in words, and with which exit code.
  void ended(const std::string& words, int exit_code);

  // What the control folder asks for.
  RunRequests poll_requests();
  void acknowledge(const RunRequests& requests, int64_t iteration, bool can_save);

  // Why something of it is not complete.
  std::optional<std::string> failure() const;

 private:
  void note(const std::string& text);

  const Config& config_;
  const Plan& plan_;
  const Console& console_;
  RunDirectory directory_;
  std::optional<MetricsWriter> metrics_;
  std::optional<StatusWriter> status_;
  std::optional<ControlFolder> control_;
  std::optional<TensorBoardWriter> tensorboard_;
  std::vector<ControlRequest> asked_;  // and not yet acknowledged
  std::optional<std::string> failure_;
};

}  // namespace bev::app
