// Models in Hugging Face's format: config.json and safetensors files, as transformers reads and
// writes.
#pragma once

#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "convert/huggingface/huggingface_config.h"
#include "convert/weight_source.h"
#include "param/param_store.h"
#include "text/tokenizer_files.h"

namespace bev {

// The heads of a BertModel, which stores none.
enum class MissingHeads : uint8_t { Refuse, Zeros };

// Fills the parameters from <dir>/model.safetensors, or from the shards that
// <dir>/model.safetensors.index.json lists, converted to the store's dtype. Rows of the vocabulary
// that the file does not have become zeros. Each rank reads the pieces it holds. Master weights of
// an optimizer are not touched: refresh them afterwards. A tensor that is missing, has another
// shape or belongs to no parameter is a Data error. REQUIRES: the store is allocated.
void load_huggingface(const std::filesystem::path& dir, ParamStore& params,
                      MissingHeads heads = MissingHeads::Refuse);

// Writes config.json, model.safetensors in the store's dtype and the files of the tokenizer, where
// they are there. `dir` appears whole or stays as it was. REQUIRES: the store holds the whole
// model.
void save_huggingface(const std::filesystem::path& dir, const Config& config,
                      const ParamStore& params);

// What save_huggingface would refuse, before a run has cost anything: a model no family can hold
// (Usage error) and a directory that holds something other than an earlier output of this function
// (Data error).
void check_huggingface_output(const std::filesystem::path& dir, const Config& config);

// A tensor under its Hugging Face name, in the layout of the file.
struct NamedValues {
  std::string name;
  Shape shape;
  std::vector<double> values;
};

// One of our tensors (value, gradient or moment of the parameter `spec`, whole) as the tensors a
// Hugging Face file would hold for it; `vocab` rows where there is one per token.
std::vector<NamedValues> huggingface_values(HuggingFaceFamily family, const ParamSpec& spec,
                                            const ConstTensor& tensor, Device& device,
                                            int64_t vocab);

// The files of a model in Hugging Face's format: their names, and which of them this program wrote.

inline constexpr const char* kHuggingFaceConfig = "config.json";
inline constexpr const char* kHuggingFaceWeights = "model.safetensors";
inline constexpr const char* kHuggingFaceIndex = "model.safetensors.index.json";

// "model-00001-of-00003.safetensors", counted from 1; of one shard: model.safetensors.
std::string huggingface_shard_name(size_t number, size_t count);

// The metadata that mark a weights file as ours. In that file and not in config.json, because
// transformers carries fields it does not know into what it saves itself.
const std::map<std::string, std::string>& huggingface_metadata();

// Data error when the folder holds something other than an earlier output of this program.
void check_huggingface_replaceable(const std::filesystem::path& dir);

// The special ids of a T5 that goes with these files: those of a generation_config.json, or of the
// tokenizer that it was trained with, or the usual ones. Data error for a generation_config.json
// that cannot be read.
DecoderIds decoder_ids(const Config& config, std::span<const TokenizerFile> files);

// Writes a model in Hugging Face's format from weights stored anywhere, part by part.

struct HuggingFaceOutput {
  size_t most_shard_bytes = std::numeric_limits<size_t>::max();
  std::optional<DType> dtype{};  // none: as stored
  size_t block_bytes = kUsualBlockBytes;
  std::vector<TokenizerFile> files{};                  // to lie beside the model
  DecoderIds ids{};                                    // of a T5
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
