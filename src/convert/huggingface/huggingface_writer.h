// Writes a model in Hugging Face's format from weights stored anywhere, part by part.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "config/config.h"
#include "convert/weight_source.h"
#include "text/tokenizer_files.h"

namespace bev {

struct HuggingFaceOutput {
  size_t most_shard_bytes = std::numeric_limits<size_t>::max();
  std::optional<DType> dtype{};  // none: as stored
  size_t block_bytes = kUsualBlockBytes;
  std::vector<TokenizerFile> files{};                  // to lie beside the model
  std::function<void(size_t bytes)> on_progress = {};  // hears of the bytes written
};

// `dir` appears whole, laid out as transformers would, or stays as it was: one file, or shards of
// at most the bytes asked for (a tensor is never cut) and an index. Of a vocabulary the rows of
// model.vocab are written. Usage error when no family can hold the model, Data error when the
// folder holds something else.
void write_huggingface(const std::filesystem::path& dir, const Config& config,
                       std::span<const ParamSpec> specs, WeightSource& source,
                       const HuggingFaceOutput& output);

}  // namespace bev
