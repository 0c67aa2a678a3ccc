// The weights of a checkpoint of Megatron-LM, put together from the shards of its ranks.
#pragma once

#include <array>
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

  // Also that copies of tables on other stages are equal to them.
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
  std::deque<ArrayFile> files_;      // as in model.shards
  std::array<int64_t, 2> layers_{};  // of the stages so far; the second: of a T5's decoder
  std::map<std::string, Ranks> arrays_;
  // Of tables that other stages hold, too: a tied head, the decoder of a T5.
  struct Copy {
    std::string original;
    int64_t tensor;
    Found found;
  };
  std::vector<Copy> copies_;
  std::set<std::string> used_;
};

// The names that versions of Megatron-LM have given to the tensors of a GPT, BERT or T5.

struct MegatronName {
  std::string ours;    // "layers.*.attention.qkv.weight"; of an MLP, "up" also where it is gated
  int64_t layer = -1;  // in its stage; -1: of none
  bool in_decoder = false;  // of a T5
};

// What a tensor of a model's dictionary is: "language_model.encoder.layers.0.input_norm.weight",
// "decoder.layers.0.mlp.linear_fc1.weight". None: nothing that these models have. A T5 has two
// stacks of layers, the others have one under the name of either.
std::optional<MegatronName> megatron_name(std::string_view name, bool is_t5 = false);

// State of a library or a buffer that no parameter needs.
bool is_megatron_buffer(std::string_view name);

}  // namespace bev
