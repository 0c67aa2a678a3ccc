// The weights of a model in Hugging Face's format.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "convert/array_patch.h"
#include "convert/huggingface/huggingface.h"

namespace bev {

class HuggingFaceWeights final : public ArrayWeights {
 public:
  // Opens <dir>/model.safetensors, or the shards that <dir>/model.safetensors.index.json lists, and
  // reads <dir>/config.json. Data error; Usage error for a model we do not have.
  explicit HuggingFaceWeights(const std::filesystem::path& dir,
                              MissingHeads heads = MissingHeads::Refuse);

  const HuggingFaceModel& description() const { return description_; }

  void check_all_used() override;
  // A model may store a tensor twice, such as a tied head and the token table. Data error if the
  // two differ.
  void check_copies();
  // Whether the parameter belongs to a head that the file of a BertModel does not store, and reads
  // as zeros.
  bool lacks(const ParamSpec& spec);
  // Tensors that the architecture of config.json has no use for: the pooler and the binary head in
  // the file of a BertForMaskedLM. Known after check_all_used().
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  void add_file(const std::string& file);
  void add_shards();
  // By the name itself, or by the name without the prefix. Remembers that it was asked for.
  Found find(const std::string& name);
  Found get(const std::string& name);
  std::vector<ArrayPatch> patches(const ParamSpec& spec) override;

  std::filesystem::path dir_;
  MissingHeads heads_;
  HuggingFaceModel description_;
  std::deque<ArrayFile> files_;
  std::map<std::string, Found> arrays_;
  std::set<std::string> used_;
  std::vector<std::string> left_out_;
};

}  // namespace bev
