// The weights in a checkpoint of ours, whatever layout wrote it. What an optimizer keeps is left
// alone.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_reader.h"
#include "config/config.h"
#include "convert/weight_source.h"
#include "text/tokenizer_files.h"

namespace bev {

class CheckpointWeights final : public WeightSource {
 public:
  // `vocab` rows of a vocabulary must be there; it may be padded to any number. With
  // `prefers_masters`, the more exact copy that an optimizer keeps of a weight is read where there
  // is one. REQUIRES: the checkpoint outlives this.
  CheckpointWeights(const CheckpointReader& stored, int64_t vocab, bool prefers_masters = false)
      : stored_(stored), vocab_(vocab), prefers_masters_(prefers_masters) {}

  DType dtype_of(const ParamSpec& spec) override;
  void read(const ParamSpec& spec, const Rectangle& where, DType dtype, std::byte* to) override;
  void check_all_used() override;

 private:
  const CheckpointReader::Tensor& find(const ParamSpec& spec);

  const CheckpointReader& stored_;
  int64_t vocab_;
  bool prefers_masters_;
  std::set<std::string> used_;
};

// Rows of the token table in a checkpoint; 0 if it has none.
int64_t stored_vocab_rows(const CheckpointReader& stored);

// A checkpoint without an optimizer, of a model that was trained elsewhere: ROOT/release.

struct ReleaseOptions {
  std::string program;                 // who writes it, with the version
  std::string origin;                  // what the weights were, in words
  std::vector<TokenizerFile> files{};  // carried along
  size_t most_file_bytes = size_t{5} * 1000 * 1000 * 1000;
  size_t block_bytes = kUsualBlockBytes;
  std::function<void(size_t bytes)> on_progress = {};  // called with the bytes written
};

// Data error when `root` holds something other than an earlier output of write_release.
void check_release_place(const std::filesystem::path& root);

// Whole tensors in the types of the source, bit for bit, the configuration and the files. Appears
// whole or not at all. Data error.
void write_release(const std::filesystem::path& root, const Config& config,
                   std::span<const ParamSpec> specs, WeightSource& source,
                   const ReleaseOptions& options);

}  // namespace bev
