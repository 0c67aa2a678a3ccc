// What state the checkpoints of a folder are in.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/manifest.h"

namespace bev {

struct SurveyedCheckpoint {
  CheckpointPlace place{};
  std::optional<Manifest> manifest{};  // none where it cannot be read
  uint64_t bytes = 0;                  // that its files take on the disk
  // Why it cannot be used; empty: manifest, sizes and headers of all files are right, and the
  // pieces make up whole tensors. The data themselves were not read.
  std::string problem{};

  bool is_good() const { return problem.empty(); }
  std::string name() const { return place.path.filename().string(); }
};

// The checkpoints that a path of the user means (find_checkpoints), newest first. Data error where
// there are none.
std::vector<CheckpointPlace> checkpoints_at(const std::filesystem::path& path);

// The same, looked at.
std::vector<SurveyedCheckpoint> survey(const std::filesystem::path& path);

// The newest of them that is good. Data error that says what is wrong with the newest where none
// is.
CheckpointPlace newest_good(const std::filesystem::path& path);

}  // namespace bev
