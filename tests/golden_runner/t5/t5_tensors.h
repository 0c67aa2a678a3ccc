// Tensors of a T5 under the names of Megatron-LM and of transformers, and states of its layers.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "data/batch.h"
#include "pipeline/rank_model.h"

namespace bev::golden {

enum class T5Names : uint8_t { Megatron, HuggingFace };

// A file of parameters, or of gradients, of one of the two programs.
class T5File {
 public:
  T5File(const std::filesystem::path& path, T5Names names, int64_t heads)
      : reader_(path), names_(names), heads_(heads) {}

  // The elements of our parameter. Throws a Data error if the file lacks some.
  std::vector<double> read(const std::string& name);
  // Copies all values into the parameters of a model on one rank.
  void load(RankModel& model);
  // Names that nothing has read.
  std::vector<std::string> unread() const;

 private:
  std::vector<double> read_megatron(const std::string& name);
  std::vector<double> read_huggingface(const std::string& name);
  std::vector<double> at(const std::string& name);
  // Megatron-LM's rows lie head by head: those of each of `parts` in turn.
  std::vector<double> by_part(const std::string& name, int64_t parts);

  SafetensorsReader reader_;
  T5Names names_;
  int64_t heads_;
  std::set<std::string> seen_;
};

// For one micro-batch: encoder_hidden_0 (input of the first block), encoder_hidden_1, ... (output
// of each block), encoder_final_norm, the same for the decoder, encoder_position_bias and
// decoder_position_bias, and lm_logits. Rows of padding are left out. REQUIRES: the model is on one
// rank.
std::map<std::string, std::vector<double>> t5_forward(RankModel& model, const HostBatch& batch);

// The rows of tokens before the padding, of [tokens, columns].
std::vector<double> without_padding(const std::vector<double>& values, const HostText& text);

// All elements of a tensor on a device.
std::vector<double> values_on(Device& device, const ConstTensor& t);

}  // namespace bev::golden
