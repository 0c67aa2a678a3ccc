// The names that versions of Megatron-LM have given to the tensors of a GPT.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bev {

struct MegatronName {
  std::string ours;    // "layers.*.attention.qkv.weight"; of an MLP, "up" also where it is gated
  int64_t layer = -1;  // in its stage; -1: of none
};

// What a tensor of a model's dictionary is: "language_model.encoder.layers.0.input_norm.weight",
// "decoder.layers.0.mlp.linear_fc1.weight". None: nothing a GPT has.
std::optional<MegatronName> megatron_name(std::string_view name);

// State of a library or a buffer that no parameter needs.
bool is_megatron_buffer(std::string_view name);

}  // namespace bev
