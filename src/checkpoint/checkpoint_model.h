// A checkpoint as a model to be used or converted: which one a path means, and what it says about
// its model.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "config/config.h"
#include "text/tokenizer_files.h"

namespace bev {

inline constexpr const char* kCheckpointConfig = "config.toml";

struct OpenedCheckpoint {
  std::unique_ptr<StoredCheckpoint> stored;
  std::vector<std::string> passed_over{};  // why newer ones are not used, a sentence each
};

// The newest good one of those that a path means (find_checkpoints). Data error when there is none;
// of the newest, where all are damaged.
OpenedCheckpoint open_checkpoint(const std::filesystem::path& path);

// The configuration it was made with, its file checked; without the layout and the device of the
// training. model.vocab_multiple is 1, because the padding of a vocabulary is no part of the model.
Config read_checkpoint_config(const StoredCheckpoint& stored);

// The files of the tokenizer that were carried along, each checked.
std::vector<TokenizerFile> carried_tokenizer_files(const StoredCheckpoint& stored);

}  // namespace bev
