#include "convert/huggingface/huggingface_config.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/check.h"
#include "base/json_fields.h"
#include "checkpoint/safetensors.h"
#include "config/resolve.h"
#include "config/rules/config_check.h"
#include "convert/huggingface/huggingface.h"

namespace bev {

namespace {

constexpr std::string_view kGatedPrefix = "gated-";

std::optional<Activation> find_activation(std::string_view name,
                                          std::span<const ActivationName> names) {
  for (const ActivationName& known : names)
    if (known.name == name) return known.activation;
  return {};
}

// "gelu, relu".
std::string list_of(std::span<const ActivationName> names) {
  std::string list;
  for (const ActivationName& known : names)
    list += (list.empty() ? "" : ", ") + std::string(known.name);
  return list;
}

Activation read_activation(const JsonFields& f, const char* field, const char* otherwise,
                           std::span<const ActivationName> names) {
  const auto known = find_activation(f.text_or(field, otherwise), names);
  if (!known) f.refuse(field, "there are " + list_of(names));
  return *known;
}

ModelConfig read_gpt2(const JsonFields& f) {
  if (f.flag_or("add_cross_attention", false))
    f.refuse("add_cross_attention", "a decoder has none");
  if (!f.flag_or("scale_attn_weights", true)) {
    f.refuse("scale_attn_weights", "scores are always divided by the root of the head size");
  }
  if (f.flag_or("scale_attn_by_inverse_layer_idx", false)) {
    f.refuse("scale_attn_by_inverse_layer_idx", "all layers have one scale");
  }
  ModelConfig m;
  m.layers = f.size("n_layer");
  m.width = f.size("n_embd");
  m.heads = m.kv_heads = f.size("n_head");
  BEV_CHECK(m.width % m.heads == 0, Data, "{}: n_embd = {} is not a multiple of n_head = {}",
            f.source(), m.width, m.heads);
  m.head_dim = m.width / m.heads;
  m.ffn = f.size_or("n_inner", 4 * m.width);
  m.vocab = f.size("vocab_size");
  m.positions = f.size("n_positions");
  m.norm = NormKind::LayerNorm;
  m.norm_eps = f.number_or("layer_norm_epsilon", 1e-5);
  m.activation = read_activation(f, "activation_function", "gelu_new", kPlainActivationNames);
  m.position = PositionKind::Learned;
  m.bias = BiasKind::All;
  m.tied = f.flag_or("tie_word_embeddings", true);
  m.hidden_dropout = f.number_or("resid_pdrop", 0.1);
  if (f.number_or("embd_pdrop", 0.1) != m.hidden_dropout) {
    f.refuse("embd_pdrop", "one dropout serves embedding and residual, so it must be resid_pdrop");
  }
  m.attention_dropout = f.number_or("attn_pdrop", 0.1);
  return m;
}

int64_t width_over_heads(const JsonFields& f, const ModelConfig& m) {
  BEV_CHECK(m.width % m.heads == 0, Data,
            "{}: hidden_size = {} is not a multiple of num_attention_heads = {}", f.source(),
            m.width, m.heads);
  return m.width / m.heads;
}

// The first of the file's architectures; empty if it names none.
std::string architecture_in(const JsonFields& f) {
  if (!f.has("architectures") || f.list("architectures").empty()) return {};
  const Json& first = f.list("architectures").front();
  return first.is_string() ? first.get<std::string>() : std::string();
}

ModelConfig read_bert(const JsonFields& f) {
  if (f.flag_or("is_decoder", false)) f.refuse("is_decoder", "BERT is an encoder here");
  if (f.flag_or("add_cross_attention", false))
    f.refuse("add_cross_attention", "an encoder has none");
  if (f.text_or("position_embedding_type", "absolute") != "absolute")
    f.refuse("position_embedding_type", "there is absolute");
  if (f.size_or("type_vocab_size", 2) != 2) f.refuse("type_vocab_size", "there are 2 token types");
  ModelConfig m;
  m.family = ModelFamily::Bert;
  m.norm_placement = NormPlacement::Post;
  m.layers = f.size("num_hidden_layers");
  m.width = f.size("hidden_size");
  m.heads = m.kv_heads = f.size("num_attention_heads");
  m.head_dim = width_over_heads(f, m);
  m.ffn = f.size("intermediate_size");
  m.vocab = f.size("vocab_size");
  m.positions = f.size("max_position_embeddings");
  m.norm_eps = f.number_or("layer_norm_eps", 1e-12);
  m.activation = read_activation(f, "hidden_act", "gelu", kPlainActivationNames);
  // The head of transformers has the activation of the layers.
  if (m.activation != Activation::GeluErf) f.refuse("hidden_act", "BERT has gelu");
  if (!f.flag_or("tie_word_embeddings", true))
    f.refuse("tie_word_embeddings", "the LM head of BERT is the token embedding");
  m.hidden_dropout = f.number_or("hidden_dropout_prob", 0.1);
  m.attention_dropout = f.number_or("attention_probs_dropout_prob", 0.1);
  m.binary_head = architecture_in(f) != "BertForMaskedLM";
  return m;
}

// "relu" or "gated-gelu". Other fields may repeat the parts of it.
Activation read_feed_forward(const JsonFields& f) {
  const std::string whole = f.text_or("feed_forward_proj", "relu");
  const bool is_gated = whole.starts_with(kGatedPrefix);
  std::string name = is_gated ? whole.substr(kGatedPrefix.size()) : whole;
  // As transformers reads it.
  if (whole == "gated-gelu") name = "gelu_new";
  std::span<const ActivationName> names = kPlainActivationNames;
  if (is_gated) names = kGatedActivationNames;
  const auto known = find_activation(name, names);
  if (!known)
    f.refuse("feed_forward_proj",
             format("there are {}, and gated- with {}", list_of(kPlainActivationNames),
                    list_of(kGatedActivationNames)));
  const std::string repeats = format("feed_forward_proj is {}", in_quotes(whole));
  if (f.flag_or("is_gated_act", is_gated) != is_gated) f.refuse("is_gated_act", repeats);
  if (f.has("dense_act_fn") && find_activation(f.text("dense_act_fn"), names) != known)
    f.refuse("dense_act_fn", repeats);
  return *known;
}

ModelConfig read_t5(const JsonFields& f) {
  const std::string architecture = architecture_in(f);
  if (!architecture.empty() && architecture != "T5ForConditionalGeneration" &&
      architecture != "T5WithLMHeadModel")
    f.refuse("architectures",
             format("{} is not T5ForConditionalGeneration", in_quotes(architecture)));
  if (!f.flag_or("is_encoder_decoder", true))
    f.refuse("is_encoder_decoder", "a T5 has an encoder and a decoder");
  ModelConfig m;
  m.family = ModelFamily::T5;
  m.layers = f.size("num_layers");
  m.decoder_layers = f.size_or("num_decoder_layers", m.layers);
  m.width = f.size("d_model");
  m.heads = m.kv_heads = f.size("num_heads");
  m.head_dim = f.size("d_kv");
  m.ffn = f.size("d_ff");
  m.vocab = f.size("vocab_size");
  m.norm = NormKind::RmsNorm;
  m.norm_eps = f.number_or("layer_norm_epsilon", 1e-6);
  m.activation = read_feed_forward(f);
  m.position = PositionKind::Relative;
  m.relative_buckets = f.size_or("relative_attention_num_buckets", 32);
  m.relative_distance = f.size_or("relative_attention_max_distance", 128);
  if (m.relative_buckets < 4)
    f.refuse("relative_attention_num_buckets", "an encoder needs at least 4");
  if (m.relative_distance <= m.relative_buckets / 2)
    f.refuse("relative_attention_max_distance",
             "it must be above half of relative_attention_num_buckets");
  m.bias = BiasKind::None;
  m.scale_attention = m.head_bias = false;
  m.tied = f.flag_or("tie_word_embeddings", true);
  m.scale_head_input = f.flag_or("scale_decoder_outputs", m.tied);
  if (m.scale_head_input && !m.tied)
    f.refuse("scale_decoder_outputs", "only the input of a tied head is scaled");
  m.hidden_dropout = m.attention_dropout = f.number_or("dropout_rate", 0.1);
  return m;
}

DecoderIds read_decoder_ids(const JsonFields& f, int64_t vocab) {
  const auto id = [&](const char* name, int64_t otherwise) {
    const Json* value = f.find(name);
    if (value == nullptr) return otherwise;
    // Several ids may end a text.
    if (value->is_array() && !value->empty()) value = &value->front();
    if (!value->is_number_unsigned() || *value >= vocab)
      f.fail(name, format("an id below {}, the vocabulary", vocab));
    return value->get<int64_t>();
  };
  DecoderIds ids;
  ids.pad = id("pad_token_id", ids.pad);
  ids.end = id("eos_token_id", ids.end);
  ids.begin = id("decoder_start_token_id", ids.pad);
  return ids;
}

void write_decoder_ids(const DecoderIds& ids, Json& j) {
  j["decoder_start_token_id"] = ids.begin;
  j["eos_token_id"] = ids.end;
  j["pad_token_id"] = ids.pad;
}

void read_rope(const JsonFields& f, ModelConfig& m) {
  m.position = PositionKind::Rope;
  const std::optional<JsonFields> parameters = f.object("rope_parameters");
  const std::optional<JsonFields> scaling = parameters ? parameters : f.object("rope_scaling");
  const JsonFields& rope = scaling ? *scaling : f;
  m.rope_base = rope.has("rope_theta") ? rope.number("rope_theta") : f.number_or("rope_theta", 1e4);
  const bool partial_inside = rope.has("partial_rotary_factor");
  if ((partial_inside ? rope : f).number_or("partial_rotary_factor", 1) != 1) {
    (partial_inside ? rope : f).refuse("partial_rotary_factor", "these families turn whole heads");
  }
  if (!scaling) return;
  if (scaling->has("full_attention") || scaling->has("sliding_attention")) {
    f.refuse("rope_parameters", "all layers have one rotation");
  }
  const char* type_field = scaling->has("rope_type") ? "rope_type" : "type";
  const std::string type = scaling->text_or(type_field, "default");
  if (type == "default") return;
  if (type != "llama3") scaling->refuse(type_field, "there are default and llama3");
  m.rope_scaling = RopeScaling::Llama3;
  m.rope_factor = scaling->number("factor");
  m.rope_low = scaling->number("low_freq_factor");
  m.rope_high = scaling->number("high_freq_factor");
  m.rope_original_positions = scaling->size("original_max_position_embeddings");
}

void read_bias(const JsonFields& f, HuggingFaceFamily family, ModelConfig& m) {
  const bool attention = f.flag_or("attention_bias", false);
  switch (family) {
    case HuggingFaceFamily::Llama:
      if (attention != f.flag_or("mlp_bias", false)) {
        f.refuse("attention_bias",
                 "biases are none, all (with mlp_bias), or qkv (model_type qwen2)");
      }
      m.bias = attention ? BiasKind::All : BiasKind::None;
      return;
    case HuggingFaceFamily::Qwen2: m.bias = BiasKind::Qkv; return;
    default:
      if (attention) f.refuse("attention_bias", "this family has no biases here");
      m.bias = BiasKind::None;
  }
}

// Qwen lists which layers have the window; here all have it or none.
int64_t read_qwen_window(const JsonFields& f, int64_t layers) {
  if (!f.flag_or("use_sliding_window", false)) return 0;
  const int64_t window = f.size_or("sliding_window", 4096);
  int64_t windowed = 0;
  if (const Json* types = f.find("layer_types"); types != nullptr && types->is_array()) {
    for (const Json& type : *types) windowed += type == "sliding_attention" ? 1 : 0;
  } else {
    const int64_t first = f.has("max_window_layers") ? f.size("max_window_layers", 0) : 28;
    windowed = layers - std::min(first, layers);
  }
  if (windowed == 0) return 0;
  if (windowed != layers) f.refuse("max_window_layers", "all layers have the window or none has");
  return window;
}

ModelConfig read_llama_like(const JsonFields& f, HuggingFaceFamily family) {
  const bool is_qwen = family == HuggingFaceFamily::Qwen2 || family == HuggingFaceFamily::Qwen3;
  ModelConfig m;
  m.layers = f.size("num_hidden_layers");
  m.width = f.size("hidden_size");
  m.heads = f.size("num_attention_heads");
  // What transformers assumes where the name is absent; null always means the number of heads.
  const int64_t kv_default = family == HuggingFaceFamily::Mistral ? 8 : is_qwen ? 32 : m.heads;
  m.kv_heads =
      f.size_or("num_key_value_heads", f.states("num_key_value_heads") ? m.heads : kv_default);
  BEV_CHECK(m.kv_heads <= m.heads && m.heads % m.kv_heads == 0, Data,
            "{}: num_attention_heads = {} is not a multiple of num_key_value_heads = {}",
            f.source(), m.heads, m.kv_heads);
  if (f.has("head_dim")) {
    m.head_dim = f.size("head_dim");
  } else if (family == HuggingFaceFamily::Qwen3) {
    m.head_dim = 128;
  } else {
    m.head_dim = width_over_heads(f, m);
  }
  m.ffn = f.size("intermediate_size");
  m.vocab = f.size("vocab_size");
  m.positions = f.size("max_position_embeddings");
  m.norm = NormKind::RmsNorm;
  m.norm_eps = f.number_or("rms_norm_eps", 1e-6);
  m.activation = read_activation(f, "hidden_act", "silu", kGatedActivationNames);
  read_rope(f, m);
  read_bias(f, family, m);
  m.qk_norm = family == HuggingFaceFamily::Qwen3;
  m.tied = f.flag_or("tie_word_embeddings", false);
  if (family == HuggingFaceFamily::Mistral) {
    m.window = f.states("sliding_window") ? f.size_or("sliding_window", 0) : 4096;
  } else if (is_qwen) {
    m.window = read_qwen_window(f, m.layers);
  }
  m.hidden_dropout = 0;
  m.attention_dropout = f.number_or("attention_dropout", 0);
  return m;
}

ModelConfig read_model(const JsonFields& f, HuggingFaceFamily family) {
  switch (family) {
    case HuggingFaceFamily::Gpt2: return read_gpt2(f);
    case HuggingFaceFamily::Bert: return read_bert(f);
    case HuggingFaceFamily::T5: return read_t5(f);
    case HuggingFaceFamily::Llama:
    case HuggingFaceFamily::Mistral:
    case HuggingFaceFamily::Qwen2:
    case HuggingFaceFamily::Qwen3: break;
  }
  return read_llama_like(f, family);
}

// Whether the weights of a folder have a tensor of this name.
bool stores_tensor(const std::filesystem::path& dir, const std::string& name) {
  std::error_code ignored;
  if (std::filesystem::exists(dir / kHuggingFaceWeights, ignored))
    return SafetensorsReader(dir / kHuggingFaceWeights).find(name) != nullptr;
  if (!std::filesystem::exists(dir / kHuggingFaceIndex, ignored)) return false;
  const Json index = read_json(dir / kHuggingFaceIndex);
  return index.is_object() && index.contains("weight_map") && index["weight_map"].contains(name);
}

}  // namespace

HuggingFaceModel read_huggingface_config(const std::filesystem::path& dir) {
  const std::filesystem::path path = dir / kHuggingFaceConfig;
  HuggingFaceModel read = parse_huggingface_config(read_json(path), path.string());
  // transformers 5 writes tie_word_embeddings true into every T5. A 1.1 does not scale the head's
  // input and stores a head.
  ModelConfig& m = read.model;
  if (read.family == HuggingFaceFamily::T5 && m.tied && !m.scale_head_input)
    m.tied = !stores_tensor(dir, "lm_head.weight");
  return read;
}

HuggingFaceModel parse_huggingface_config(const Json& config, std::string_view source) {
  const JsonFields f(config, std::string(source));
  const std::string type = f.text("model_type");
  const auto found = std::find(kHuggingFaceFamilies.begin(), kHuggingFaceFamilies.end(), type);
  if (found == kHuggingFaceFamilies.end())
    f.refuse("model_type", format("there are {}", fmt::join(kHuggingFaceFamilies, ", ")));
  if (f.has("quantization_config")) f.refuse("quantization_config", "weights are F32, BF16 or F16");
  const auto family = static_cast<HuggingFaceFamily>(found - kHuggingFaceFamilies.begin());
  HuggingFaceModel read{.family = family, .model = read_model(f, family)};
  read.model.init_std = f.number_or("initializer_range", 0.02);
  read.model.vocab_multiple = 1;
  check_model_ranges(read.model, f.source());
  if (family == HuggingFaceFamily::Bert) read.has_heads = architecture_in(f) != "BertModel";
  if (family == HuggingFaceFamily::T5) read.ids = read_decoder_ids(f, read.model.vocab);
  return read;
}

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

// feed_forward_proj of a T5.
std::string feed_forward_name(Activation activation) {
  if (activation == Activation::GeGluTanh) return "gated-gelu";
  // "gated-gelu" is the GELU by tanh.
  if (activation == Activation::GeGluErf) return "gated-gelu_python";
  return format("{}{}", is_gated(activation) ? kGatedPrefix : "", activation_name(activation));
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
  if (m.family == ModelFamily::Bert) return HuggingFaceFamily::Bert;
  if (m.family == ModelFamily::T5) return HuggingFaceFamily::T5;
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

void require_bert(const ModelConfig& m, const ModelShape& shape, Misfits& misfits) {
  misfits.require(m.norm_placement == NormPlacement::Post, "model.norm_placement",
                  word(m.norm_placement), "norms after the residual sums (post)");
  misfits.require(m.norm == NormKind::LayerNorm, "model.norm", word(m.norm), "layernorm");
  misfits.require(m.bias == BiasKind::All, "model.bias", word(m.bias), "all biases");
  misfits.require(m.activation == Activation::GeluErf, "model.activation", word(m.activation),
                  "gelu-erf");
  misfits.require(m.head_activation == Activation::GeluErf, "model.head_activation",
                  word(m.head_activation), "gelu-erf");
  misfits.require(shape.kv_heads == shape.heads, "model.kv_heads", std::to_string(shape.kv_heads),
                  format("as many as heads, {}", shape.heads));
  misfits.require(shape.heads * shape.head_dim == shape.width, "model.head_dim",
                  std::to_string(shape.head_dim), "width / heads");
}

void require_t5(const ModelConfig& m, const ModelShape& shape, Misfits& misfits) {
  misfits.require(m.position == PositionKind::Relative, "model.position", word(m.position),
                  "relative positions");
  misfits.require(m.norm == NormKind::RmsNorm, "model.norm", word(m.norm), "rmsnorm");
  misfits.require(m.bias == BiasKind::None, "model.bias", word(m.bias), "none");
  misfits.require(!m.head_bias, "model.head_bias", "true", "no bias of the LM head");
  misfits.require(!m.scale_attention, "model.scale_attention", "true",
                  "attention scores that are not scaled");
  misfits.require(
      m.scale_head_input == m.tied, "model.scale_head_input", m.scale_head_input ? "true" : "false",
      m.tied ? "a scaled input of a tied LM head" : "no scaling without a tied LM head");
  misfits.require(m.mask_cross_padding, "model.mask_cross_padding", "false",
                  "a mask of the encoder's padding");
  misfits.require(shape.kv_heads == shape.heads, "model.kv_heads", std::to_string(shape.kv_heads),
                  format("as many as heads, {}", shape.heads));
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

void write_bert(const ModelConfig& m, const ModelShape& shape, Json& j) {
  if (!m.binary_head) j["architectures"] = Json::array({"BertForMaskedLM"});
  j["num_hidden_layers"] = shape.layers;
  j["hidden_size"] = shape.width;
  j["num_attention_heads"] = shape.heads;
  j["intermediate_size"] = shape.ffn;
  j["max_position_embeddings"] = shape.positions;
  j["type_vocab_size"] = 2;
  j["layer_norm_eps"] = m.norm_eps;
  j["hidden_act"] = activation_name(m.activation);
  j["hidden_dropout_prob"] = m.hidden_dropout;
  j["attention_probs_dropout_prob"] = m.attention_dropout;
}

void write_t5(const ModelConfig& m, const ModelShape& shape, const DecoderIds& ids, Json& j) {
  j["is_encoder_decoder"] = true;
  j["num_layers"] = shape.layers;
  j["num_decoder_layers"] = shape.decoder_layers;
  j["d_model"] = shape.width;
  j["num_heads"] = shape.heads;
  j["d_kv"] = shape.head_dim;
  j["d_ff"] = shape.ffn;
  j["relative_attention_num_buckets"] = m.relative_buckets;
  j["relative_attention_max_distance"] = m.relative_distance;
  j["layer_norm_epsilon"] = m.norm_eps;
  j["feed_forward_proj"] = feed_forward_name(m.activation);
  j["dropout_rate"] = m.hidden_dropout;
  write_decoder_ids(ids, j);
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
    case HuggingFaceFamily::Gpt2:
    case HuggingFaceFamily::Bert:
    case HuggingFaceFamily::T5: break;
  }
}

std::string_view architecture(HuggingFaceFamily family) {
  switch (family) {
    case HuggingFaceFamily::Gpt2: return "GPT2LMHeadModel";
    case HuggingFaceFamily::Llama: return "LlamaForCausalLM";
    case HuggingFaceFamily::Mistral: return "MistralForCausalLM";
    case HuggingFaceFamily::Qwen2: return "Qwen2ForCausalLM";
    case HuggingFaceFamily::Qwen3: return "Qwen3ForCausalLM";
    case HuggingFaceFamily::Bert: return "BertForPreTraining";
    case HuggingFaceFamily::T5: return "T5ForConditionalGeneration";
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
  BEV_CHECK(m.family != ModelFamily::Biencoder, Usage, "a bi-encoder fits no Hugging Face family");
  const ModelShape shape = resolve_model(config);
  const HuggingFaceFamily family = nearest_family(m);
  Misfits misfits(family);
  switch (family) {
    case HuggingFaceFamily::Gpt2: require_gpt2(m, shape, misfits); break;
    case HuggingFaceFamily::Bert: require_bert(m, shape, misfits); break;
    case HuggingFaceFamily::T5: require_t5(m, shape, misfits); break;
    case HuggingFaceFamily::Llama:
    case HuggingFaceFamily::Mistral:
    case HuggingFaceFamily::Qwen2:
    case HuggingFaceFamily::Qwen3: require_llama_like(family, m, shape, misfits); break;
  }
  misfits.finish();
  return family;
}

std::string huggingface_misfit(const Config& config) {
  try {
    (void)huggingface_family(config);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

Json huggingface_config(const Config& config, DType dtype, const DecoderIds& ids) {
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
  switch (family) {
    case HuggingFaceFamily::Gpt2: write_gpt2(m, shape, j); break;
    case HuggingFaceFamily::Bert: write_bert(m, shape, j); break;
    case HuggingFaceFamily::T5: write_t5(m, shape, ids, j); break;
    case HuggingFaceFamily::Llama:
    case HuggingFaceFamily::Mistral:
    case HuggingFaceFamily::Qwen2:
    case HuggingFaceFamily::Qwen3: write_llama_like(family, m, shape, j); break;
  }
  return j;
}

DecoderIds read_generation_config(const std::filesystem::path& file, int64_t vocab) {
  return read_decoder_ids(JsonFields(read_json(file), file.string()), vocab);
}

std::string generation_config(const DecoderIds& ids) {
  Json j = Json::object();
  write_decoder_ids(ids, j);
  return j.dump(2) + "\n";
}

}  // namespace bev
