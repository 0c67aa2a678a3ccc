// Models in Hugging Face's format: config.json and safetensors files, as transformers reads and
// writes.
#pragma once

#include <filesystem>
#include <vector>

#include "config/config.h"
#include "convert/huggingface/huggingface_config.h"
#include "param/param_store.h"

namespace bev {

// Fills the parameters from <dir>/model.safetensors, or from the shards that
// <dir>/model.safetensors.index.json lists, converted to the store's dtype. Rows of the vocabulary
// that the file does not have become zeros. Each rank reads the pieces it holds. Master weights of
// an optimizer are not touched: refresh them afterwards. A tensor that is missing, has another
// shape or belongs to no parameter is a Data error. REQUIRES: the store is allocated.
void load_huggingface(const std::filesystem::path& dir, ParamStore& params);

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

}  // namespace bev
