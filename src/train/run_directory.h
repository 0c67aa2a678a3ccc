// The folder of a run: config.toml, metrics.jsonl, status.json and control/ from the start, model/
// at the end.
#pragma once

#include <filesystem>
#include <string>

#include "config/config.h"
#include "param/param_store.h"

namespace bev {

class RunDirectory {
 public:
  // Names only; touches nothing.
  explicit RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path config_file() const { return path_ / "config.toml"; }
  std::filesystem::path metrics_file() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path status_file() const { return path_ / "status.json"; }
  std::filesystem::path control() const { return path_ / "control"; }
  std::filesystem::path model() const { return path_ / "model"; }
  // What a rank that is a process says.
  std::filesystem::path rank_log(int rank) const;
  const std::filesystem::path& path() const { return path_; }

  // Finds errors that would otherwise appear later, and writes nothing: a model that Hugging Face's
  // format does not hold in a run without checkpoints (Usage error), a folder that cannot be made
  // or written, foreign files in the place of the configuration or the model, a disk without room
  // for `model_bytes` (Data errors).
  void check(const Config& config, size_t model_bytes) const;

  // Makes the folder, an empty metrics file and the configuration. Removes unfinished files of
  // killed runs.
  void prepare(const std::string& config_text) const;

  // Whether a folder is one of these, with a model in it.
  static bool is_run(const std::filesystem::path& path);

 private:
  std::filesystem::path path_;
};

}  // namespace bev
