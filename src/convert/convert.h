// Conversion of models between Hugging Face's format, checkpoints of Megatron-LM and our own.
// Values are copied bit for bit; memory is bounded, whatever the size of the model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convert/weight_source.h"

namespace bev {

struct ConversionOptions {
  std::string program{};  // who converts, with the version
  size_t block_bytes = kUsualBlockBytes;
  // Called once before anything is written, with the bytes of all tensors; then with those written.
  std::function<void(int64_t bytes)> on_start = {};
  std::function<void(size_t bytes)> on_progress = {};
};

struct Conversion {
  std::filesystem::path output;  // what was written
  int64_t parameters = 0, bytes = 0;
  std::vector<std::string> notes{};  // for the user, a sentence each
};

// A model in Hugging Face's format becomes `root`/release. Data error, Usage error.
Conversion huggingface_to_checkpoint(const std::filesystem::path& from,
                                     const std::filesystem::path& root,
                                     const ConversionOptions& options);

// What tools/megatron_export.py made of a checkpoint of Megatron-LM becomes `root`/release. `vocab`
// is the size of the vocabulary without padding, where megatron.json does not say it.
Conversion megatron_to_checkpoint(const std::filesystem::path& from,
                                  const std::filesystem::path& root, std::optional<int64_t> vocab,
                                  const ConversionOptions& options);

struct HuggingFaceExport {
  size_t most_shard_bytes = size_t{5} * 1000 * 1000 * 1000;
  std::optional<DType> dtype{};  // none: as stored
};

// A checkpoint (open_checkpoint) becomes the folder `dir` in Hugging Face's format.
Conversion checkpoint_to_huggingface(const std::filesystem::path& from,
                                     const std::filesystem::path& dir, const HuggingFaceExport& how,
                                     const ConversionOptions& options);

}  // namespace bev
