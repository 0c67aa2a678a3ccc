// The checkpoints of a folder, which of them are intact, and the model that one holds.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/manifest.h"
#include "config/config.h"
#include "text/tokenizer_files.h"

namespace bev {

struct CheckpointInfo {
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
std::vector<CheckpointInfo> survey(const std::filesystem::path& path);

// The newest of them that is good. Data error that says what is wrong with the newest where none
// is.
CheckpointPlace newest_good(const std::filesystem::path& path);

// A checkpoint as a model to be used or converted: which one a path means, and what it says about
// its model.

inline constexpr const char* kCheckpointConfig = "config.toml";

struct OpenedCheckpoint {
  std::unique_ptr<CheckpointReader> stored;
  std::vector<std::string> passed_over{};  // why newer ones are not used, a sentence each
};

// The newest good one of those that a path means (find_checkpoints). Data error when there is none;
// of the newest, where all are damaged.
OpenedCheckpoint open_checkpoint(const std::filesystem::path& path);

// The configuration it was made with, its file checked; without the layout and the device of the
// training. model.vocab_multiple is 1, because the padding of a vocabulary is no part of the model.
Config read_checkpoint_config(const CheckpointReader& stored);

// The files of the tokenizer that were carried along, each checked.
std::vector<TokenizerFile> carried_tokenizer_files(const CheckpointReader& stored);

}  // namespace bev
