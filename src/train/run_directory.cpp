#include "train/run_directory.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/check.h"
#include "base/file.h"
#include "checkpoint/checkpoint_folder.h"
#include "convert/huggingface/huggingface.h"
#include "convert/huggingface/huggingface_config.h"
#include "train/run_checkpoints.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

// The names of unfinished files of AtomicFile and AtomicDirectory.
bool is_unfinished(const std::string& name) {
  return name.starts_with("config.toml.partial.") || name.starts_with("metrics.jsonl.partial.") ||
         name.starts_with("status.json.partial.") || name.starts_with(".model.partial.");
}

void clear_leftovers(const fs::path& folder) {
  std::vector<fs::path> leftovers;
  std::error_code ignored;  // leftovers that cannot be removed do no harm
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored))
    if (is_unfinished(entry->path().filename().string())) leftovers.push_back(entry->path());
  for (const fs::path& path : leftovers) fs::remove_all(path, ignored);
}

}  // namespace

std::filesystem::path RunDirectory::rank_log(int rank) const {
  return path_ / "logs" / format("rank-{:05d}.log", rank);
}

void RunDirectory::check(const Config& config, size_t model_bytes) const {
  if (const std::string misfit = huggingface_misfit(config); misfit.empty()) {
    check_huggingface_output(model(), config);
  } else {
    BEV_CHECK(
        !save_folder(config).empty(), Usage,
        "{}\n  checkpoints can hold it: set --save FOLDER (checkpoint.save), or --train.output "
        "\"\" to keep nothing",
        misfit);
  }
  const std::string field = format("train.output {}", path_.string());
  require_writable(field, path_);
  std::error_code ignored;
  BEV_CHECK(!fs::exists(config_file(), ignored) || fs::exists(metrics_file(), ignored), Data,
            "train.output {}: {} is not of a run, and would be replaced; another name is needed",
            path_.string(), config_file().string());
  require_disk_space(field, path_, static_cast<double>(model_bytes), "the trained model takes");
}

void RunDirectory::prepare(const std::string& config_text) const {
  std::error_code error;
  fs::create_directories(path_, error);
  BEV_CHECK(!error, Data, "cannot make the folder {}: {}", path_.string(), error.message());
  clear_leftovers(path_);
  // Create the metrics first: check() refuses to replace a configuration without metrics, and a run
  // that was killed between the two must be able to restart.
  std::ofstream metrics(metrics_file(), std::ios::app);
  BEV_CHECK(metrics.is_open(), Data, "cannot write {}: {}", metrics_file().string(),
            std::strerror(errno));
  AtomicFile file(config_file());
  file.write(config_text);
  file.commit();
}

bool RunDirectory::is_run(const fs::path& path) {
  const RunDirectory run(path);
  std::error_code ignored;
  return fs::is_regular_file(run.config_file(), ignored) && fs::is_directory(run.model(), ignored);
}

}  // namespace bev
