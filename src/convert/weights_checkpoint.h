// A checkpoint of weights alone, made of a model that was trained elsewhere: ROOT/release.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "convert/weight_source.h"
#include "text/tokenizer_files.h"

namespace bev {

struct WeightsCheckpoint {
  std::string program;                 // who writes it, with the version
  std::string origin;                  // what the weights were, in words
  std::vector<TokenizerFile> files{};  // carried along
  size_t most_file_bytes = size_t{5} * 1000 * 1000 * 1000;
  size_t block_bytes = kUsualBlockBytes;
  std::function<void(size_t bytes)> on_progress = {};  // hears of the bytes written
};

// Data error when `root` holds something other than an earlier output of write_weights_checkpoint.
void check_weights_checkpoint_place(const std::filesystem::path& root);

// Whole tensors in the types of the source, bit for bit, the configuration and the files. Appears
// whole or not at all. Data error.
void write_weights_checkpoint(const std::filesystem::path& root, const Config& config,
                              std::span<const ParamSpec> specs, WeightSource& source,
                              const WeightsCheckpoint& about);

}  // namespace bev
