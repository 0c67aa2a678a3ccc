#include "convert/megatron/megatron_names.h"

#include <array>
#include <charconv>

#include "base/format.h"

namespace bev {

namespace {

// Names without their last word (weight, bias).
struct TensorNameLine {
  std::string_view theirs, ours;
};

constexpr std::array<TensorNameLine, 6> kOutside{{
    {"embedding.word_embeddings", "embedding.tokens"},
    {"embedding.position_embeddings", "embedding.positions"},
    {"final_norm", "final_norm"},
    {"final_layernorm", "final_norm"},
    {"output_layer", "head"},
    {"word_embeddings_for_head", "head"},
}};

// Of one layer; where a norm is fused with the product behind it, that has its weights.
constexpr std::array<TensorNameLine, 21> kInLayer{{
    {"input_norm", "norm1"},
    {"input_layernorm", "norm1"},
    {"self_attention.linear_qkv.layer_norm", "norm1"},
    {"self_attention.query_key_value", "attention.qkv"},
    {"attention.query_key_value", "attention.qkv"},
    {"self_attention.linear_qkv", "attention.qkv"},
    {"self_attention.q_layernorm", "attention.q_norm"},
    {"self_attention.k_layernorm", "attention.k_norm"},
    {"self_attention.q_norm", "attention.q_norm"},
    {"self_attention.k_norm", "attention.k_norm"},
    {"self_attention.dense", "attention.out"},
    {"attention.dense", "attention.out"},
    {"self_attention.linear_proj", "attention.out"},
    {"post_attention_norm", "norm2"},
    {"post_attention_layernorm", "norm2"},
    {"pre_mlp_layernorm", "norm2"},
    {"mlp.linear_fc1.layer_norm", "norm2"},
    {"mlp.dense_h_to_4h", "mlp.up"},
    {"mlp.linear_fc1", "mlp.up"},
    {"mlp.dense_4h_to_h", "mlp.down"},
    {"mlp.linear_fc2", "mlp.down"},
}};

bool drop_prefix(std::string_view& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return true;
}

// Divides "a.b.weight" and "a.b_weight" into "a.b" and "weight".
std::optional<std::pair<std::string_view, std::string_view>> divide(std::string_view name) {
  for (const std::string_view last : {"weight", "bias"}) {
    if (!name.ends_with(last) || name.size() < last.size() + 2) continue;
    const std::string_view stem = name.substr(0, name.size() - last.size() - 1);
    const char between = name[stem.size()];
    if (between == '.' || (between == '_' && stem.ends_with("layer_norm")))
      return std::pair(stem, last);
  }
  return std::nullopt;
}

template <size_t N>
std::string_view find(const std::array<TensorNameLine, N>& lines, std::string_view theirs) {
  for (const TensorNameLine& line : lines)
    if (line.theirs == theirs) return line.ours;
  return {};
}

}  // namespace

std::optional<MegatronName> megatron_name(std::string_view name) {
  drop_prefix(name, "language_model.");
  for (const std::string_view stack : {"encoder.", "transformer.", "decoder."})
    if (drop_prefix(name, stack)) break;
  MegatronName found;
  const bool is_in_layer = drop_prefix(name, "layers.");
  if (is_in_layer) {
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), found.layer);
    const auto digits = static_cast<size_t>(end - name.data());
    if (error != std::errc{} || found.layer < 0 || digits >= name.size() || name[digits] != '.')
      return std::nullopt;
    name.remove_prefix(digits + 1);
  }
  const auto parts = divide(name);
  if (!parts) return std::nullopt;
  const std::string_view ours =
      is_in_layer ? find(kInLayer, parts->first) : find(kOutside, parts->first);
  if (ours.empty()) return std::nullopt;
  found.ours = format("{}{}.{}", is_in_layer ? "layers.*." : "", ours, parts->second);
  return found;
}

bool is_megatron_buffer(std::string_view name) {
  return name.ends_with("_extra_state") || name.ends_with("inv_freq");
}

}  // namespace bev
