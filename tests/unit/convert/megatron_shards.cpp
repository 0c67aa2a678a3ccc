#include "unit/convert/megatron_shards.h"

#include <fstream>
#include <map>
#include <vector>

#include "base/format.h"
#include "checkpoint/safetensors.h"
#include "config/resolve.h"
#include "pipeline/rank_model.h"
#include "unit/convert/bit_pattern.h"

namespace bev::test {

namespace {

constexpr size_t kSize = 2;  // bf16

using Row = std::vector<std::byte>;
using Rows = std::vector<Row>;

struct Cutter {
  const MegatronCase& about;
  ModelShape shape;
  std::map<std::string, ParamSpec> specs;
  std::map<std::string, Rows> arrays;  // of the shard being made
  std::map<std::string, bool> is_vector;

  explicit Cutter(const MegatronCase& c) : about(c), shape(resolve_model(c.config)) {
    for (ParamSpec& spec : model_parameters(c.config)) specs.emplace(spec.name, spec);
  }

  bool is_t5() const { return about.config.model.family == ModelFamily::T5; }
  bool is_bert() const { return about.config.model.family == ModelFamily::Bert; }
  bool has(const std::string& ours) const { return specs.contains(ours); }

  Rows rows_of(const std::string& ours) const {
    const ParamSpec& spec = specs.at(ours);
    const auto columns = static_cast<size_t>(whole_of(spec.shape).columns);
    const std::vector<std::byte> all = pattern_bytes(ours, spec.shape.elements(), kSize);
    Rows rows;
    for (size_t at = 0; at < all.size(); at += columns * kSize)
      rows.emplace_back(all.begin() + static_cast<ptrdiff_t>(at),
                        all.begin() + static_cast<ptrdiff_t>(at + columns * kSize));
    return rows;
  }

  void put(const std::string& theirs, const std::string& ours, Rows rows) {
    is_vector[theirs] = specs.at(ours).shape.rank() == 1;
    arrays[theirs] = std::move(rows);
  }

  static Rows slice(const Rows& rows, int64_t begin, int64_t count) {
    return {rows.begin() + begin, rows.begin() + begin + count};
  }
  static void append(Rows& to, const Rows& rows) { to.insert(to.end(), rows.begin(), rows.end()); }

  Rows own(const Rows& rows, int64_t rank) const {
    const int64_t count = static_cast<int64_t>(rows.size()) / about.tensor;
    return slice(rows, rank * count, count);
  }

  Rows own_columns(const Rows& rows, int64_t rank) const {
    Rows result;
    for (const Row& row : rows) {
      const auto bytes = static_cast<int64_t>(row.size()) / about.tensor;
      result.emplace_back(row.begin() + rank * bytes, row.begin() + (rank + 1) * bytes);
    }
    return result;
  }

  Rows padded_table(const std::string& ours) const {
    Rows rows = rows_of(ours);
    while (static_cast<int64_t>(rows.size()) < about.padded_vocab)
      rows.emplace_back(rows.front().size(), std::byte{0x7A});
    return rows;
  }

  // The heads of a rank, in the order of the version.
  Rows qkv(const Rows& rows, int64_t rank) const {
    const int64_t queries = shape.heads * shape.head_dim;
    return by_head(slice(rows, 0, queries),
                   slice(rows, queries, static_cast<int64_t>(rows.size()) - queries), rank);
  }

  Rows by_head(const Rows& queries, const Rows& keys_values, int64_t rank) const {
    const int64_t groups = shape.kv_heads, size = shape.head_dim;
    const Rows q = own(queries, rank);
    const Rows k = own(slice(keys_values, 0, groups * size), rank);
    const Rows v = own(slice(keys_values, groups * size, groups * size), rank);
    Rows result;
    if (about.version >= 2) {
      const int64_t q_rows = static_cast<int64_t>(queries.size()) / groups;
      for (int64_t group = 0; group < groups / about.tensor; ++group) {
        append(result, slice(q, group * q_rows, q_rows));
        append(result, slice(k, group * size, size));
        append(result, slice(v, group * size, size));
      }
    } else if (about.version >= 1) {
      for (size_t row = 0; row < k.size(); ++row) {
        if (!q.empty()) append(result, {q[row]});
        append(result, {k[row], v[row]});
      }
    } else {
      append(result, q);
      append(result, k);
      append(result, v);
    }
    return result;
  }

  Rows gate_up(const Rows& rows, int64_t rank) const {
    Rows result = own(slice(rows, 0, shape.ffn), rank);
    append(result, own(slice(rows, shape.ffn, shape.ffn), rank));
    return result;
  }

  // Megatron-LM's name for a tensor of a layer, without weight or bias.
  std::string name_in_layer(const std::string& what, const std::string& last,
                            bool in_decoder) const {
    using Names = MegatronCase::Names;
    static const std::map<std::string, std::array<std::string, 3>> kDecoderNames{
        {"cross_norm",
         {"post_attention_layernorm.", "post_attention_norm.", "pre_cross_attn_layernorm."}},
        {"cross_attention.q",
         {"inter_attention.query.", "inter_attention.query.", "cross_attention.linear_q."}},
        {"cross_attention.kv",
         {"inter_attention.key_value.", "inter_attention.key_value.",
          "cross_attention.linear_kv."}},
        {"cross_attention.out",
         {"inter_attention.dense.", "inter_attention.dense.", "cross_attention.linear_proj."}},
        {"norm2",
         {"post_inter_attention_layernorm.", "post_inter_attention_norm.", "pre_mlp_layernorm."}}};
    static const std::map<std::string, std::array<std::string, 3>> kNames{
        {"norm1", {"input_layernorm.", "input_norm.", "self_attention.linear_qkv.layer_norm_"}},
        {"attention.qkv",
         {"attention.query_key_value.", "self_attention.query_key_value.",
          "self_attention.linear_qkv."}},
        {"attention.out",
         {"attention.dense.", "self_attention.dense.", "self_attention.linear_proj."}},
        {"norm2",
         {"post_attention_layernorm.", "post_attention_norm.", "mlp.linear_fc1.layer_norm_"}},
        {"mlp.up", {"mlp.dense_h_to_4h.", "mlp.dense_h_to_4h.", "mlp.linear_fc1."}},
        {"mlp.gate_up", {"mlp.dense_h_to_4h.", "mlp.dense_h_to_4h.", "mlp.linear_fc1."}},
        {"mlp.down", {"mlp.dense_4h_to_h.", "mlp.dense_4h_to_h.", "mlp.linear_fc2."}}};
    const size_t style = about.names == Names::Old ? 0 : about.names == Names::Legacy ? 1 : 2;
    const auto& names = in_decoder && kDecoderNames.contains(what) ? kDecoderNames : kNames;
    return names.at(what)[style] + last;
  }

  std::string stack() const {
    using Names = MegatronCase::Names;
    if (about.names == Names::Core && is_bert()) return "encoder.";
    return about.names == Names::Old      ? "language_model.transformer."
           : about.names == Names::Legacy ? "language_model.encoder."
                                          : "decoder.";
  }

  // `ours`: where our layers are, "" or "decoder."; `theirs`: the stack.
  void add_layers(const std::string& ours_in, const std::string& theirs_in, int64_t first,
                  int64_t count, int64_t rank) {
    for (int64_t local = 0; local < count; ++local) {
      for (const char* what : {"norm1", "attention.qkv", "attention.out", "cross_norm",
                               "cross_attention.q", "cross_attention.kv", "cross_attention.out",
                               "norm2", "mlp.up", "mlp.gate_up", "mlp.down"}) {
        for (const char* last : {"weight", "bias"}) {
          const std::string ours = format("{}layers.{}.{}.{}", ours_in, first + local, what, last);
          if (!has(ours)) continue;
          Rows rows = rows_of(ours);
          const std::string_view kind = what;
          const bool is_bias = std::string_view(last) == "bias";
          if (kind == "attention.qkv") rows = qkv(rows, rank);
          if (kind == "cross_attention.kv") rows = by_head({}, rows, rank);
          if (kind == "mlp.up" || kind == "cross_attention.q") rows = own(rows, rank);
          if (kind == "mlp.gate_up") rows = gate_up(rows, rank);
          if ((kind.ends_with("attention.out") || kind == "mlp.down") && !is_bias)
            rows = own_columns(rows, rank);
          put(format("{}layers.{}.{}", theirs_in, local,
                     name_in_layer(what, last, ours_in == "decoder.")),
              ours, std::move(rows));
        }
      }
    }
  }

  void add_final_norm(const std::string& ours_in, const std::string& theirs_in) {
    const bool is_new = about.names == MegatronCase::Names::Legacy;
    for (const char* last : {"weight", "bias"}) {
      const std::string ours = format("{}final_norm.{}", ours_in, last);
      if (has(ours))
        put(format("{}{}.{}", theirs_in, is_new ? "final_norm" : "final_layernorm", last), ours,
            rows_of(ours));
    }
  }

  void add_embedding(const std::string& outer, int64_t rank) {
    const std::string table = "embedding.tokens.weight";
    put(outer + "embedding.word_embeddings.weight", table, own(padded_table(table), rank));
    for (const auto& [ours, theirs] : {std::pair("embedding.positions", "position_embeddings"),
                                       std::pair("embedding.types", "tokentype_embeddings")}) {
      const std::string name = format("{}.weight", ours);
      if (has(name)) put(format("{}embedding.{}.weight", outer, theirs), name, rows_of(name));
    }
  }

  // The encoder has the first half of the stages; the decoder's first one has the tables, too.
  void add_t5_stage(const std::string& prefix, const std::string& outer, int64_t stage,
                    int64_t stages, int64_t rank) {
    const int64_t split = stages / 2, each = std::max<int64_t>(1, split);
    const std::string encoder = outer + "encoder.", decoder = outer + "decoder.";
    if (stage == 0 || stage == split) add_embedding(outer, rank);
    if (stages == 1 || stage < split) {
      const int64_t count = shape.layers / each;
      add_layers("encoder.", encoder, stage * count, count, rank);
      if (stage == each - 1) add_final_norm("encoder.", encoder);
    }
    if (stages > 1 && stage < split) return;
    const int64_t count = shape.decoder_layers / each;
    add_layers("decoder.", decoder, (stage - split) * count, count, rank);
    if (stage != stages - 1) return;
    add_final_norm("decoder.", decoder);
    const bool is_core = about.names == MegatronCase::Names::Core;
    put(prefix + (is_core ? "output_layer.bias" : "lm_head.bias"), "lm_head.bias",
        own(padded_table("lm_head.bias"), rank));
    if (stages > 2)
      put(prefix + (is_core ? "output_layer.weight" : "word_embeddings_for_head.weight"),
          "embedding.tokens.weight", own(padded_table("embedding.tokens.weight"), rank));
  }

  void add_stage(int64_t chunk, int64_t pipeline, int64_t rank) {
    const bool is_core = about.names == MegatronCase::Names::Core;
    const std::string prefix = about.chunks == 1 ? "model." : format("model{}.", chunk);
    const int64_t stages = about.pipeline * about.chunks, stage = chunk * about.pipeline + pipeline;
    const std::string outer = prefix + (is_core ? "" : "language_model.");
    if (is_t5()) return add_t5_stage(prefix, outer, stage, stages, rank);
    if (stage == 0) add_embedding(outer, rank);
    const int64_t layers = shape.layers / stages;
    add_layers("", prefix + stack(), stage * layers, layers, rank);
    if (stage != stages - 1) return;
    add_final_norm("", prefix + stack());
    if (is_bert()) add_bert_heads(prefix, outer, rank);
    const bool is_tied = about.config.model.tied;
    if (is_tied && stages == 1) return;
    const std::string ours = is_tied ? "embedding.tokens.weight" : "head.weight";
    const std::string theirs = is_tied && !is_core ? prefix + "word_embeddings_for_head.weight"
                                                   : outer + "output_layer.weight";
    put(theirs, ours, own(padded_table(ours), rank));
  }

  void add_bert_heads(const std::string& prefix, const std::string& outer, int64_t rank) {
    using Names = MegatronCase::Names;
    const bool is_core = about.names == Names::Core;
    const std::string norm = is_core                     ? "lm_head.layer_norm."
                             : about.names == Names::Old ? "lm_head.layernorm."
                                                         : "lm_head.norm.";
    for (const char* last : {"weight", "bias"}) {
      put(prefix + "lm_head.dense." + last, format("lm_head.dense.{}", last),
          rows_of(format("lm_head.dense.{}", last)));
      put(prefix + norm + last, format("lm_head.norm.{}", last),
          rows_of(format("lm_head.norm.{}", last)));
      if (!has("binary_head.output.weight")) continue;
      put(outer + "pooler.dense." + last, format("binary_head.pooler.{}", last),
          rows_of(format("binary_head.pooler.{}", last)));
      put(prefix + "binary_head." + last, format("binary_head.output.{}", last),
          rows_of(format("binary_head.output.{}", last)));
    }
    put(prefix + (is_core ? "output_layer.bias" : "lm_head.bias"), "lm_head.bias",
        own(padded_table("lm_head.bias"), rank));
  }

  void write(const std::filesystem::path& path) const {
    std::vector<TensorToWrite> list;
    for (const auto& [name, rows] : arrays) {
      const auto count = static_cast<int64_t>(rows.size());
      const auto columns = static_cast<int64_t>(rows.front().size() / kSize);
      list.push_back(
          {name, DType::bf16, is_vector.at(name) ? Shape{count} : Shape{count, columns}});
    }
    // Without the flush to the disk that a test has no use for.
    std::ofstream file(path, std::ios::binary);
    file << safetensors_header(list, {});
    for (const auto& [name, rows] : arrays)
      for (const Row& row : rows)
        file.write(reinterpret_cast<const char*>(row.data()),
                   static_cast<std::streamsize>(row.size()));
  }
};

Json args_of(const MegatronCase& about, const ModelShape& shape) {
  const ModelConfig& m = about.config.model;
  Json args{
      {"num_layers", shape.layers},
      {"hidden_size", shape.width},
      {"num_attention_heads", shape.heads},
      {"kv_channels", shape.head_dim},
      {"ffn_hidden_size", shape.ffn},
      {"vocab_size", shape.vocab},
      {"padded_vocab_size", about.padded_vocab},
      {"max_position_embeddings", shape.positions},
      {"norm_epsilon", m.norm_eps},
      {"swiglu", m.activation == Activation::SwiGlu},
      {"add_bias_linear", m.bias == BiasKind::All},
      {"normalization", m.norm == NormKind::RmsNorm ? "RMSNorm" : "LayerNorm"},
      {"untie_embeddings_and_output_weights", !m.tied},
      {"position_embedding_type", m.position == PositionKind::Rope ? "rope" : "learned_absolute"},
      {"rotary_base", m.rope_base},
      {"hidden_dropout", m.hidden_dropout},
      {"attention_dropout", m.attention_dropout}};
  if (shape.kv_heads != shape.heads) args["num_query_groups"] = shape.kv_heads;
  if (shape.decoder_layers > 0) args["decoder_num_layers"] = shape.decoder_layers;
  return args;
}

}  // namespace

Json write_megatron_shards(const std::filesystem::path& dir, const MegatronCase& about) {
  std::filesystem::create_directories(dir);
  Cutter cutter(about);
  Json json{{"format", 1},
            {"args", args_of(about, cutter.shape)},
            {"tensor", about.tensor},
            {"pipeline", about.pipeline},
            {"chunks", about.chunks},
            {"checkpoint_version", about.version},
            {"iteration", 42},
            {"shards", Json::array()}};
  for (int64_t pipeline = 0; pipeline < about.pipeline; ++pipeline) {
    for (int64_t rank = 0; rank < about.tensor; ++rank) {
      cutter.arrays.clear();
      for (int64_t chunk = 0; chunk < about.chunks; ++chunk)
        cutter.add_stage(chunk, pipeline, rank);
      const std::string file = format("mp_rank_{:02d}_{:03d}.safetensors", rank, pipeline);
      cutter.write(dir / file);
      json["shards"].push_back({{"file", file}, {"tensor", rank}, {"pipeline", pipeline}});
    }
  }
  std::ofstream(dir / "megatron.json") << json.dump(1);
  return json;
}

}  // namespace bev::test
