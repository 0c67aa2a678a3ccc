#include "convert/huggingface/huggingface_family.h"

#include <string>

#include "base/check.h"
#include "config/resolve.h"

namespace bev {

namespace {

std::string_view activation_name(Activation activation) {
  for (const ActivationName& known : kPlainActivationNames) {
    if (known.activation == activation) return known.name;
  }
  for (const ActivationName& known : kGatedActivationNames) {
    if (known.activation == activation) return known.name;
  }
  return "";
}

// Collects the fields of a model that a family cannot express.
class Misfits {
 public:
  explicit Misfits(HuggingFaceFamily family) : family_(family) {}

  void require(bool fits, std::string_view field, std::string value, std::string_view has) {
    if (!fits) lines_ += format("\n  {} = {}: {} has {}", field, value, name_of(family_), has);
  }
  void finish() const {
    BEV_CHECK(lines_.empty(), Usage, "the model fits no Hugging Face family; nearest is {}, but{}",
              name_of(family_), lines_);
  }

 private:
  HuggingFaceFamily family_;
  std::string lines_;
};

template <class E>
std::string word(E choice) {
  return std::string(name_of_choice(choice));
}

HuggingFaceFamily nearest_family(const ModelConfig& m) {
  if (m.position != PositionKind::Rope) return HuggingFaceFamily::Gpt2;
  if (m.qk_norm) return HuggingFaceFamily::Qwen3;
  if (m.bias == BiasKind::Qkv) return HuggingFaceFamily::Qwen2;
  return m.window > 0 ? HuggingFaceFamily::Mistral : HuggingFaceFamily::Llama;
}

void require_gpt2(const ModelConfig& m, const ModelShape& shape, Misfits& misfits) {
  misfits.require(m.position == PositionKind::Learned, "model.position", word(m.position),
                  "learned positions");
  misfits.require(m.norm == NormKind::LayerNorm, "model.norm", word(m.norm), "layernorm");
  misfits.require(m.bias == BiasKind::All, "model.bias", word(m.bias), "all biases");
  misfits.require(!is_gated(m.activation), "model.activation", word(m.activation),
                  "a plain activation");
  misfits.require(!m.qk_norm, "model.qk_norm", "true", "none");
  misfits.require(m.window == 0, "model.window", std::to_string(m.window), "none");
  misfits.require(shape.kv_heads == shape.heads, "model.kv_heads", std::to_string(shape.kv_heads),
                  format("as many as heads, {}", shape.heads));
  misfits.require(shape.heads * shape.head_dim == shape.width, "model.head_dim",
                  std::to_string(shape.head_dim), "width / heads");
}

void require_llama_like(HuggingFaceFamily family, const ModelConfig& m, const ModelShape& shape,
                        Misfits& misfits) {
  misfits.require(m.norm == NormKind::RmsNorm, "model.norm", word(m.norm), "rmsnorm");
  misfits.require(is_gated(m.activation), "model.activation", word(m.activation),
                  "a gated activation");
  misfits.require(m.rope_fraction == 1, "model.rope_fraction", format("{}", m.rope_fraction), "1");
  switch (family) {
    case HuggingFaceFamily::Llama:
      misfits.require(m.bias != BiasKind::Qkv, "model.bias", word(m.bias), "none or all");
      misfits.require(shape.width % shape.heads == 0, "model.heads", std::to_string(shape.heads),
                      format("a divisor of the width, {}", shape.width));
      break;
    case HuggingFaceFamily::Qwen2:
      misfits.require(m.bias == BiasKind::Qkv, "model.bias", word(m.bias), "qkv");
      break;
    default: misfits.require(m.bias == BiasKind::None, "model.bias", word(m.bias), "none");
  }
}

void write_gpt2(const ModelConfig& m, const ModelShape& shape, Json& j) {
  j["n_layer"] = shape.layers;
  j["n_embd"] = shape.width;
  j["n_head"] = shape.heads;
  j["n_inner"] = shape.ffn;
  j["n_positions"] = shape.positions;
  j["layer_norm_epsilon"] = m.norm_eps;
  j["activation_function"] = activation_name(m.activation);
  j["resid_pdrop"] = j["embd_pdrop"] = m.hidden_dropout;
  j["attn_pdrop"] = m.attention_dropout;
}

void write_llama_like(HuggingFaceFamily family, const ModelConfig& m, const ModelShape& shape,
                      Json& j) {
  j["num_hidden_layers"] = shape.layers;
  j["hidden_size"] = shape.width;
  j["num_attention_heads"] = shape.heads;
  j["num_key_value_heads"] = shape.kv_heads;
  j["head_dim"] = shape.head_dim;
  j["intermediate_size"] = shape.ffn;
  j["max_position_embeddings"] = shape.positions;
  j["rms_norm_eps"] = m.norm_eps;
  j["hidden_act"] = activation_name(m.activation);
  j["rope_theta"] = m.rope_base;
  j["rope_scaling"] = nullptr;
  if (m.rope_scaling == RopeScaling::Llama3) {
    j["rope_scaling"] = {{"rope_type", "llama3"},
                         {"factor", m.rope_factor},
                         {"low_freq_factor", m.rope_low},
                         {"high_freq_factor", m.rope_high},
                         {"original_max_position_embeddings", m.rope_original_positions}};
  }
  j["attention_dropout"] = m.attention_dropout;
  const Json window = m.window > 0 ? Json(m.window) : Json(nullptr);
  switch (family) {
    case HuggingFaceFamily::Llama:
      j["attention_bias"] = j["mlp_bias"] = m.bias == BiasKind::All;
      break;
    case HuggingFaceFamily::Mistral: j["sliding_window"] = window; break;
    case HuggingFaceFamily::Qwen3: j["attention_bias"] = false; [[fallthrough]];
    case HuggingFaceFamily::Qwen2:
      j["use_sliding_window"] = m.window > 0;
      j["sliding_window"] = window;
      j["max_window_layers"] = m.window > 0 ? 0 : shape.layers;
      break;
    case HuggingFaceFamily::Gpt2: break;
  }
}

std::string_view architecture(HuggingFaceFamily family) {
  switch (family) {
    case HuggingFaceFamily::Gpt2: return "GPT2LMHeadModel";
    case HuggingFaceFamily::Llama: return "LlamaForCausalLM";
    case HuggingFaceFamily::Mistral: return "MistralForCausalLM";
    case HuggingFaceFamily::Qwen2: return "Qwen2ForCausalLM";
    case HuggingFaceFamily::Qwen3: return "Qwen3ForCausalLM";
  }
  return "";
}

std::string_view torch_name(DType dtype) {
  switch (dtype) {
    case DType::f64: return "float64";
    case DType::bf16: return "bfloat16";
    case DType::f16: return "float16";
    default: return "float32";
  }
}

}  // namespace

std::string_view name_of(HuggingFaceFamily family) {
  return kHuggingFaceFamilies[static_cast<size_t>(family)];
}

HuggingFaceFamily huggingface_family(const Config& config) {
  const ModelConfig& m = config.model;
  const ModelShape shape = resolve_model(config);
  const HuggingFaceFamily family = nearest_family(m);
  Misfits misfits(family);
  if (family == HuggingFaceFamily::Gpt2) {
    require_gpt2(m, shape, misfits);
  } else {
    require_llama_like(family, m, shape, misfits);
  }
  misfits.finish();
  return family;
}

Json huggingface_config(const Config& config, DType dtype) {
  const HuggingFaceFamily family = huggingface_family(config);
  const ModelConfig& m = config.model;
  const ModelShape shape = resolve_model(config);
  Json j = Json::object();
  j["architectures"] = Json::array({architecture(family)});
  j["model_type"] = name_of(family);
  j["vocab_size"] = shape.vocab;
  j["tie_word_embeddings"] = m.tied;
  j["initializer_range"] = m.init_std;
  j["torch_dtype"] = torch_name(dtype);
  j["use_cache"] = true;
  // Which ids are special is the tokenizer's business; without null transformers would assume 1
  // and 2.
  j["bos_token_id"] = j["eos_token_id"] = j["pad_token_id"] = nullptr;
  if (family == HuggingFaceFamily::Gpt2) {
    write_gpt2(m, shape, j);
  } else {
    write_llama_like(family, m, shape, j);
  }
  return j;
}

}  // namespace bev
