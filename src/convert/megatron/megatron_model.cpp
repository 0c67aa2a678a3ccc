#include "convert/megatron/megatron_model.h"

#include <algorithm>

#include "base/check.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "config/rules/config_check.h"
#include "convert/array_patch.h"

namespace bev {

namespace {

constexpr int64_t kFormat = 1;
constexpr int64_t kMostRanks = 4096;

Activation read_activation(const JsonFields& f) {
  if (f.flag_or("swiglu", false)) return Activation::SwiGlu;
  if (f.flag_or("squared_relu", false)) return Activation::SquaredRelu;
  // The fused kernel of bias and GELU has the approximation by tanh, torch's function has not.
  const bool is_tanh = f.flag_or("openai_gelu", false) || f.flag_or("bias_gelu_fusion", true);
  return is_tanh ? Activation::GeluTanh : Activation::GeluErf;
}

NormKind read_norm(const JsonFields& f) {
  const std::string name = f.text_or("normalization", "LayerNorm");
  if (name == "LayerNorm") return NormKind::LayerNorm;
  if (name == "RMSNorm") return NormKind::RmsNorm;
  f.refuse("normalization", "there are LayerNorm and RMSNorm");
}

BiasKind read_bias(const JsonFields& f) {
  if (f.flag_or("add_bias_linear", true)) return BiasKind::All;
  return f.flag_or("add_qkv_bias", false) ? BiasKind::Qkv : BiasKind::None;
}

void read_positions(const JsonFields& f, ModelConfig& m) {
  m.positions = f.size("max_position_embeddings");
  const std::string kind =
      f.flag_or("use_rotary_position_embeddings", false)
          ? "rope"
          : f.text_or("position_embedding_type",
                      f.flag_or("add_position_embedding", true) ? "learned_absolute" : "none");
  if (kind == "learned_absolute") {
    m.position = PositionKind::Learned;
  } else if (kind == "none") {
    m.position = PositionKind::None;
  } else if (kind == "rope") {
    m.position = PositionKind::Rope;
  } else {
    f.refuse("position_embedding_type", "there are learned_absolute, rope and none");
  }
  if (m.position != PositionKind::Rope) return;
  m.rope_base = f.number_or("rotary_base", 10000);
  m.rope_fraction = f.number_or("rotary_percent", 1);
  if (f.flag_or("rotary_interleaved", false))
    f.refuse("rotary_interleaved", "halves of a head are turned against each other");
  if (f.number_or("rotary_seq_len_interpolation_factor", 1) != 1)
    f.refuse("rotary_seq_len_interpolation_factor", "positions are not interpolated");
  if (!f.flag_or("use_rope_scaling", false)) return;
  m.rope_scaling = RopeScaling::Llama3;
  m.rope_factor = f.number_or("rope_scaling_factor", 8);
}

// [127, 0]: tokens seen before and after the own one.
int64_t read_window(const JsonFields& f) {
  const Json* value = f.find("window_size");
  if (value == nullptr) return 0;
  const bool is_pair = value->is_array() && value->size() == 2 && (*value)[0].is_number_integer() &&
                       (*value)[1].is_number_integer();
  if (!is_pair || (*value)[0] < -1 || (*value)[0] > (1 << 28) || (*value)[1] > 0)
    f.refuse("window_size", "a pair [tokens before, 0] is known");
  return (*value)[0].get<int64_t>() + 1;
}

ModelConfig read_args(const JsonFields& f) {
  if (f.has("num_experts")) f.refuse("num_experts", "there are no experts");
  if (f.flag_or("apply_layernorm_1p", false))
    f.refuse("apply_layernorm_1p", "weights of norms are stored as they are");
  if (f.flag_or("apply_residual_connection_post_layernorm", false))
    f.refuse("apply_residual_connection_post_layernorm", "the residual is taken before the norm");
  if (f.flag_or("multi_latent_attention", false))
    f.refuse("multi_latent_attention", "keys and values have heads of their own");
  ModelConfig m;
  const bool has_sides = !f.has("num_layers") && f.has("encoder_num_layers");
  m.layers = f.size(has_sides ? "encoder_num_layers" : "num_layers");
  m.width = f.size("hidden_size");
  m.heads = f.size("num_attention_heads");
  const bool has_groups = f.flag_or("group_query_attention", f.has("num_query_groups"));
  m.kv_heads = has_groups ? f.size_or("num_query_groups", m.heads) : m.heads;
  BEV_CHECK(m.kv_heads <= m.heads && m.heads % m.kv_heads == 0, Data,
            "{}: num_attention_heads = {} is not a multiple of num_query_groups = {}", f.source(),
            m.heads, m.kv_heads);
  BEV_CHECK(f.has("kv_channels") || m.width % m.heads == 0, Data,
            "{}: hidden_size = {} is not a multiple of num_attention_heads = {}", f.source(),
            m.width, m.heads);
  m.head_dim = f.size_or("kv_channels", m.width / m.heads);
  m.ffn = f.size_or("ffn_hidden_size", 4 * m.width);
  m.vocab = f.size(f.has("vocab_size") ? "vocab_size" : "padded_vocab_size");
  m.vocab_multiple = 1;
  m.norm = read_norm(f);
  m.norm_eps = f.number_or(f.has("norm_epsilon") ? "norm_epsilon" : "layernorm_epsilon", 1e-5);
  m.activation = read_activation(f);
  m.bias = read_bias(f);
  m.tied = !f.flag_or("untie_embeddings_and_output_weights", false);
  m.qk_norm = f.flag_or("qk_layernorm", false);
  m.window = read_window(f);
  m.hidden_dropout = f.number_or("hidden_dropout", 0.1);
  m.attention_dropout = f.number_or("attention_dropout", 0.1);
  m.init_std = f.number_or("init_method_std", 0.02);
  read_positions(f, m);
  check_model_ranges(m, f.source());
  return m;
}

int64_t read_ranks(const JsonFields& f, const char* name) {
  const int64_t value = f.size(name);
  BEV_CHECK(value <= kMostRanks, Data, "{}: {} = {} is more than {}", f.source(), name, value,
            kMostRanks);
  return value;
}

void read_shards(const JsonFields& f, MegatronModel& model) {
  const Json* list = f.find("shards");
  const auto ranks = static_cast<size_t>(model.tensor * model.pipeline);
  BEV_CHECK(list != nullptr && list->is_array() && list->size() == ranks, Data,
            "{}: shards is not a list of {} x {} files, one per tensor and pipeline rank",
            f.source(), model.tensor, model.pipeline);
  model.shards.resize(ranks);
  for (const Json& entry : *list) {
    const JsonFields shard(entry, f.source() + ", shards");
    const MegatronShard found{.file = shard.text("file"),
                              .tensor = shard.size("tensor", 0),
                              .pipeline = shard.size("pipeline", 0)};
    BEV_CHECK(is_plain_file_name(found.file), Data,
              "{}: {} is not the name of a file in this folder", f.source(), in_quotes(found.file));
    BEV_CHECK(found.tensor < model.tensor && found.pipeline < model.pipeline, Data,
              "{}: {} is of rank {}, {}; there are {} x {}", f.source(), in_quotes(found.file),
              found.tensor, found.pipeline, model.tensor, model.pipeline);
    MegatronShard& place =
        model.shards[static_cast<size_t>(found.pipeline * model.tensor + found.tensor)];
    BEV_CHECK(place.file.empty(), Data, "{}: {} and {} are of the same rank", f.source(),
              in_quotes(place.file), in_quotes(found.file));
    place = found;
  }
}

// BERT and T5 have learned positions and a tied LM head.
void require_tied_encoder(const JsonFields& args, const ModelConfig& m, std::string_view family) {
  if (m.position != PositionKind::Learned)
    args.refuse("position_embedding_type", format("a {} has learned_absolute", family));
  if (!m.tied)
    args.refuse("untie_embeddings_and_output_weights",
                format("the LM head of a {} is tied", family));
  if (m.window != 0) args.refuse("window_size", format("a {} attends to all tokens", family));
}

void make_bert(const JsonFields& args, bool has_binary_head, ModelConfig& m) {
  require_tied_encoder(args, m, "BERT");
  m.family = ModelFamily::Bert;
  m.norm_placement = NormPlacement::Pre;
  m.binary_head = has_binary_head;
  if (args.flag_or("openai_gelu", false)) m.head_activation = Activation::GeluTanh;
}

void make_t5(const JsonFields& args, ModelConfig& m) {
  require_tied_encoder(args, m, "T5");
  if (m.qk_norm) args.refuse("qk_layernorm", "a T5 has no norms of queries and keys");
  m.family = ModelFamily::T5;
  m.layers = args.size_or("encoder_num_layers", m.layers);
  m.decoder_layers = args.size_or("decoder_num_layers", m.layers);
}

// Makes the model a BERT or a T5 if the shards hold what only these have.
void recognise_family(const std::filesystem::path& dir, const JsonFields& args,
                      MegatronModel& model) {
  bool has_lm_head = false, has_binary_head = false, has_cross_attention = false;
  for (const MegatronShard& shard : model.shards) {
    const ArrayFile file(dir / shard.file);
    for (const StoredTensor& array : file.arrays()) {
      const std::string_view name = array.name;
      has_lm_head = has_lm_head || name.ends_with(".lm_head.dense.weight");
      has_binary_head = has_binary_head || name.ends_with(".binary_head.weight");
      has_cross_attention = has_cross_attention ||
                            name.find(".inter_attention.") != std::string_view::npos ||
                            name.find(".cross_attention.") != std::string_view::npos;
    }
  }
  if (has_lm_head) make_bert(args, has_binary_head, model.model);
  if (has_cross_attention) make_t5(args, model.model);
}

}  // namespace

MegatronModel read_megatron_model(const std::filesystem::path& dir) {
  const std::filesystem::path path = dir / "megatron.json";
  std::error_code ignored;
  BEV_CHECK(std::filesystem::exists(path, ignored), Data,
            "there is no {}; tools/megatron_export.py makes it, and safetensors files, of a "
            "checkpoint of Megatron-LM",
            path.string());
  const Json json = read_json(path);
  MegatronModel model = parse_megatron_model(json, path.string());
  recognise_family(dir, *JsonFields(json, path.string()).object("args"), model);
  return model;
}

MegatronModel parse_megatron_model(const Json& json, std::string_view source) {
  const JsonFields f(json, std::string(source));
  BEV_CHECK(f.size("format") == kFormat, Data, "{}: the format is {}; this program reads format {}",
            source, f.size("format"), kFormat);
  const std::optional<JsonFields> args = f.object("args");
  BEV_CHECK(args.has_value(), Data, "{}: args is missing", source);
  MegatronModel model;
  model.model = read_args(*args);
  const double version = f.number_or("checkpoint_version", 0);
  model.order = version >= 2   ? QkvOrder::Groups
                : version >= 1 ? QkvOrder::HeadsLast
                               : QkvOrder::ThreeHeads;
  BEV_CHECK(model.order == QkvOrder::Groups || model.model.kv_heads == model.model.heads, Data,
            "{}: checkpoint_version = {} is older than groups of queries, but num_query_groups = "
            "{}",
            source, version, model.model.kv_heads);
  model.iteration = f.has("iteration") ? f.size("iteration", 0) : 0;
  model.tensor = read_ranks(f, "tensor");
  model.pipeline = read_ranks(f, "pipeline");
  model.chunks = f.has("chunks") ? read_ranks(f, "chunks") : 1;
  BEV_CHECK(model.tensor * model.pipeline <= kMostRanks, Data, "{}: {} x {} ranks are too many",
            source, model.tensor, model.pipeline);
  BEV_CHECK(model.model.kv_heads % model.tensor == 0, Data,
            "{}: {} key/value heads do not divide over {} tensor ranks", source,
            model.model.kv_heads, model.tensor);
  BEV_CHECK(model.model.ffn % model.tensor == 0, Data,
            "{}: ffn_hidden_size = {} does not divide over {} tensor ranks", source,
            model.model.ffn, model.tensor);
  read_shards(f, model);
  return model;
}

}  // namespace bev
