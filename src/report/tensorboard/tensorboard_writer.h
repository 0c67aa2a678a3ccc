// Event files for TensorBoard, with the tags of Megatron-LM (docs/tensorboard.md has their table).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/run_config.h"
#include "report/tensorboard/event_file.h"
#include "report/tensorboard/event_message.h"
#include "train/train_log.h"

namespace bev {

// Writes a file of its own into a folder that may hold those of earlier runs. A run that goes on
// from a checkpoint, or goes back to one, need not say so: the first point of a curve that an
// earlier run may have drawn, and one that is not behind the last, replaces all from its x on. A
// disk that fails while the training runs does not end it.
class TensorBoardWriter {
 public:
  // `path`: the folder, which is made. `config_text` is shown on the page of texts. A point waits
  // in memory until so many do, or one is added so many seconds later. Data error when no file can
  // be opened there.
  TensorBoardWriter(const LogConfig& config, const std::filesystem::path& path, int world_size,
                    const std::string& config_text, double most_seconds_waiting = 10);

  void add(const Progress& progress);
  void add(const Validation& validation);
  void flush();

  const std::filesystem::path& file() const { return file_.path(); }
  const std::optional<std::string>& failure() const { return file_.failure(); }

 private:
  // Adds the points at x = `iteration` and, with the suffix of those tags, at x = `samples`.
  void add_on_both(int64_t iteration, std::optional<int64_t> samples,
                   std::span<const ScalarPoint> points);
  void add_points(int64_t x, std::span<const ScalarPoint> points);
  void flush_if_due();

  int64_t interval_, queue_;
  double most_seconds_waiting_;
  int world_size_;
  bool has_earlier_;  // files of earlier runs
  EventFile file_;
  std::map<std::string, int64_t> last_;  // x of each tag in this file
  std::optional<int64_t> samples_;       // consumed with the last iteration
  int64_t skipped_ = 0, waiting_ = 0;
  double flushed_;
};

}  // namespace bev
