// metrics.jsonl: one JSON object per line for every iteration and validation, for plots and
// scripts.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "train/train_log.h"

namespace bev {

// Appends; a run begins with a line of its own, so that nothing of an earlier one is lost. A disk
// that fails while the training runs ends the log, not the training: the reason is kept.
class MetricsWriter {
 public:
  // A file that cannot be opened is a Data error.
  explicit MetricsWriter(const std::filesystem::path& path);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  // What stands there of iterations and validations behind this one is removed: the run does them
  // again. Data error.
  void forget_after(int64_t iteration);
  void start(int64_t parameters, int64_t iterations);
  void add(const Progress& progress);
  void add(const Validation& validation);
  // Something else that happened: "guard", "control", "end".
  void add(std::string_view event, int64_t iteration, const std::string& text);

  const std::optional<std::string>& failure() const { return failure_; }

 private:
  void open();
  void write_line(std::string line);

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::optional<std::string> failure_;
};

}  // namespace bev
