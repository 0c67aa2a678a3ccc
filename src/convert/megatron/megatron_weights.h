// The weights of a checkpoint of Megatron-LM, put together from the shards of its ranks.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "convert/array_patch.h"
#include "convert/megatron/megatron_model.h"

namespace bev {

class MegatronWeights final : public ArrayWeights {
 public:
  // Opens the shards that the model lists in `dir` and finds out which layers each of them has.
  // Data error.
  MegatronWeights(const std::filesystem::path& dir, const MegatronModel& model);

  // Also that the copy of a tied embedding on the last stage is one.
  void check_all_used() override;

 private:
  // Of one parameter, by tensor rank.
  using Ranks = std::vector<Found>;

  // The stages in the order of the model: chunk by chunk, in each rank by rank.
  void add_stage(int64_t chunk, int64_t pipeline);
  void add(const std::string& ours, int64_t tensor, const Found& found);
  const Ranks& ranks_of(const ParamSpec& spec);
  std::vector<ArrayPatch> patches(const ParamSpec& spec) override;

  std::filesystem::path dir_;
  MegatronModel model_;
  std::deque<ArrayFile> files_;  // as in model.shards
  int64_t layers_ = 0;           // of the stages so far
  std::map<std::string, Ranks> arrays_;
  std::map<std::string, Ranks> copies_;  // on the last stage, of a tied embedding
  std::set<std::string> used_;
};

// The names that versions of Megatron-LM have given to the tensors of a GPT or BERT.

struct MegatronName {
  std::string ours;    // "layers.*.attention.qkv.weight"; of an MLP, "up" also where it is gated
  int64_t layer = -1;  // in its stage; -1: of none
};

// What a tensor of a model's dictionary is: "language_model.encoder.layers.0.input_norm.weight",
// "decoder.layers.0.mlp.linear_fc1.weight". None: nothing a GPT or BERT has.
std::optional<MegatronName> megatron_name(std::string_view name);

// State of a library or a buffer that no parameter needs.
bool is_megatron_buffer(std::string_view name);

}  // namespace bev
