#include "convert/megatron/megatron_weights.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/check.h"
#include "base/format.h"
#include "base/json.h"
#include "model/model_spec.h"
#include "param/param_store.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

// Consecutive rows of a parameter, and where Megatron-LM stores them: the rank and the first row in
// its array.
struct RowRun {
  int64_t ours, rank, theirs, rows;
};

// Where the ranks store the rows of queries, keys and values, or of keys and values alone.
std::vector<RowRun> head_runs(const MegatronModel& m, bool has_queries) {
  const int64_t heads = has_queries ? m.model.heads : 0, groups = m.model.kv_heads;
  const int64_t size = m.model.head_dim;
  const int64_t in_group = heads / groups, local_heads = m.model.heads / m.tensor;
  const int64_t first_part = has_queries ? 0 : 1;  // queries, keys, values
  std::vector<RowRun> runs;
  for (int64_t head = 0; head < heads + 2 * groups; ++head) {
    const int64_t part = head < heads ? 0 : head < heads + groups ? 1 : 2;
    const int64_t in_part = head - (part == 0 ? 0 : part == 1 ? heads : heads + groups);
    const int64_t of_rank = (part == 0 ? heads : groups) / m.tensor;
    const int64_t rank = in_part / of_rank, local = in_part % of_rank;
    const int64_t ours = head * size, stored = part - first_part;
    switch (m.order) {
      case QkvOrder::ThreeHeads:
        runs.push_back({ours, rank, (stored * local_heads + local) * size, size});
        break;
      case QkvOrder::HeadsLast:
        for (int64_t row = 0; row < size; ++row)
          runs.push_back({ours + row, rank, (local * size + row) * (3 - first_part) + stored, 1});
        break;
      case QkvOrder::Groups: {
        const int64_t group = part == 0 ? local / in_group : local;
        const int64_t place = part == 0 ? local % in_group : in_group + part - 1;
        runs.push_back({ours, rank, (group * (in_group + 2) + place) * size, size});
      }
    }
  }
  return runs;
}

// Each rank stores its shard of the gate rows, then its shard of the up rows.
std::vector<RowRun> gate_up_runs(const MegatronModel& m) {
  const int64_t local = m.model.ffn / m.tensor;
  std::vector<RowRun> runs;
  for (int64_t part = 0; part < 2; ++part)
    for (int64_t rank = 0; rank < m.tensor; ++rank)
      runs.push_back({part * m.model.ffn + rank * local, rank, part * local, local});
  return runs;
}

std::vector<RowRun> even_runs(int64_t rows, int64_t ranks) {
  std::vector<RowRun> runs;
  for (int64_t rank = 0; rank < ranks; ++rank)
    runs.push_back({rank * (rows / ranks), rank, 0, rows / ranks});
  return runs;
}

// The dimension along which Megatron-LM shards a parameter: the same as ours.
enum class CutKind : uint8_t { None, Rows, Columns };

CutKind cut_of(const ParamSpec& spec) {
  if (!spec.place.cut) return CutKind::None;
  return spec.place.cut->dim == 0 ? CutKind::Rows : CutKind::Columns;
}

std::string with_layer(std::string name, int64_t layer) {
  const size_t star = name.find('*');
  return star == std::string::npos ? name : name.replace(star, 1, std::to_string(layer));
}

}  // namespace

MegatronWeights::MegatronWeights(const fs::path& dir, const MegatronModel& model)
    : dir_(dir), model_(model) {
  for (const MegatronShard& shard : model.shards) files_.emplace_back(dir / shard.file);
  for (int64_t chunk = 0; chunk < model.chunks; ++chunk)
    for (int64_t pipeline = 0; pipeline < model.pipeline; ++pipeline) add_stage(chunk, pipeline);
  const auto check_layers = [&](int64_t stored, int64_t expected, std::string_view of) {
    BEV_CHECK(stored == expected, Data, "{}: the shards have {} layers{}, the model has {}",
              dir.string(), stored, of, expected);
  };
  const bool is_t5 = model.model.family == ModelFamily::T5;
  check_layers(layers_[0], model.model.layers, is_t5 ? " of the encoder" : "");
  if (is_t5) check_layers(layers_[1], model.model.decoder_layers, " of the decoder");
}

void MegatronWeights::add_stage(int64_t chunk, int64_t pipeline) {
  const std::string prefix = model_.chunks == 1 ? "model." : format("model{}.", chunk);
  const ModelConfig& m = model_.model;
  std::array<int64_t, 2> layers{};
  for (int64_t tensor = 0; tensor < model_.tensor; ++tensor) {
    const ArrayFile& file = files_[static_cast<size_t>(pipeline * model_.tensor + tensor)];
    for (const StoredTensor& array : file.arrays()) {
      const std::string_view name = array.name;
      BEV_CHECK(name.starts_with("model"), Data, "{}: {} is not of a model", file.path().string(),
                in_quotes(name));
      if (!name.starts_with(prefix) || is_megatron_buffer(name)) continue;
      std::optional<MegatronName> known =
          megatron_name(name.substr(prefix.size()), m.family == ModelFamily::T5);
      BEV_CHECK(known, Data, "{}: {} is nothing that a GPT, BERT or T5 of Megatron-LM has",
                file.path().string(), in_quotes(name));
      const int64_t most = known->in_decoder ? m.decoder_layers : m.layers;
      BEV_CHECK(known->layer < most, Data, "{}: {} is of a layer beyond {}", file.path().string(),
                in_quotes(name), most);
      const size_t up = known->ours.find(".mlp.up.");
      if (is_gated(m.activation) && up != std::string::npos)
        known->ours.replace(up, 8, ".mlp.gate_up.");
      const size_t side = known->in_decoder ? 1 : 0;
      layers[side] = std::max(layers[side], known->layer + 1);
      add(with_layer(known->ours, layers_[side] + known->layer), tensor, {&file, &array});
    }
  }
  for (size_t side = 0; side < layers.size(); ++side) layers_[side] += layers[side];
}

void MegatronWeights::add(const std::string& ours, int64_t tensor, const Found& found) {
  if (ours == kHeadWeight && model_.model.tied) {
    copies_.push_back({kTokenTable, tensor, found});
    return;
  }
  Ranks& ranks = arrays_[ours];
  ranks.resize(static_cast<size_t>(model_.tensor));
  Found& place = ranks[static_cast<size_t>(tensor)];
  // The first stage of a T5's decoder has the tables, too.
  if (place.array != nullptr && model_.model.family == ModelFamily::T5 &&
      ours.starts_with("embedding.")) {
    copies_.push_back({ours, tensor, found});
    return;
  }
  BEV_CHECK(place.array == nullptr, Data, "{} of {} and {} of {} are the same parameter",
            in_quotes(place.array->name), place.file->path().string(), in_quotes(found.array->name),
            found.file->path().string());
  place = found;
}

const MegatronWeights::Ranks& MegatronWeights::ranks_of(const ParamSpec& spec) {
  const auto found = arrays_.find(spec.name);
  BEV_CHECK(found != arrays_.end(), Data, "{}: no shard has a tensor for the parameter {}",
            dir_.string(), in_quotes(spec.name));
  for (size_t rank = 0; rank < found->second.size(); ++rank)
    BEV_CHECK(found->second[rank].array != nullptr, Data,
              "{}: of tensor rank {} there is no tensor for the parameter {}", dir_.string(), rank,
              in_quotes(spec.name));
  used_.insert(spec.name);
  return found->second;
}

std::vector<ArrayPatch> MegatronWeights::patches(const ParamSpec& spec) {
  const Ranks& ranks = ranks_of(spec);
  const std::string kind = param_kind(spec.name);
  const CutKind cut = cut_of(spec);
  const Rectangle whole = whole_of(spec.shape);
  // Megatron-LM pads the embedding; all ranks have the same number of rows.
  const bool is_table = is_vocab_table(spec.role);
  const int64_t stored_rows =
      is_table ? whole_of(ranks.front().array->shape).rows * model_.tensor : whole.rows;
  BEV_CHECK(stored_rows >= whole.rows, Data, "{}: {} has {} rows on all ranks, the vocabulary {}",
            ranks.front().file->path().string(), in_quotes(ranks.front().array->name), stored_rows,
            whole.rows);

  Shape expected = spec.shape;
  if (cut == CutKind::Rows) expected.set(0, stored_rows / model_.tensor);
  if (cut == CutKind::Columns) expected.set(1, spec.shape[1] / model_.tensor);
  for (const Found& found : ranks)
    BEV_CHECK(found.array->shape == expected, Data, "{}: {} is {}, a rank of the model has {}",
              found.file->path().string(), in_quotes(found.array->name),
              to_string(found.array->shape), to_string(expected));

  std::vector<ArrayPatch> patches;
  const auto add_patch = [&](int64_t rank, const Rectangle& where, int64_t row) {
    const Found& found = ranks[static_cast<size_t>(rank)];
    patches.push_back({.where = where, .file = found.file, .array = found.array, .row = row});
  };
  if (cut == CutKind::None) {
    add_patch(0, whole, 0);
  } else if (cut == CutKind::Columns) {
    for (int64_t rank = 0; rank < model_.tensor; ++rank)
      add_patch(rank, {.column = rank * expected[1], .rows = whole.rows, .columns = expected[1]},
                0);
  } else {
    const auto is_of = [&](std::string_view module) {
      return kind.find(module) != std::string::npos;
    };
    for (const RowRun& run : is_of(".attention.qkv.")        ? head_runs(model_, true)
                             : is_of(".cross_attention.kv.") ? head_runs(model_, false)
                             : is_of(".mlp.gate_up.")        ? gate_up_runs(model_)
                                                      : even_runs(stored_rows, model_.tensor)) {
      const int64_t rows = std::min(run.rows, whole.rows - run.ours);
      if (rows > 0)
        add_patch(run.rank, {.row = run.ours, .rows = rows, .columns = whole.columns}, run.theirs);
    }
  }
  return patches;
}

void MegatronWeights::check_all_used() {
  for (const auto& [ours, ranks] : arrays_) {
    if (used_.contains(ours)) continue;
    const auto found =
        std::find_if(ranks.begin(), ranks.end(), [](const Found& f) { return f.array != nullptr; });
    throw Error(ErrorKind::Data,
                format("{}: {} belongs to no parameter of the model that megatron.json describes",
                       found->file->path().string(), in_quotes(found->array->name)));
  }
  for (const auto& [original, tensor, copy] : copies_) {
    const auto found = arrays_.find(original);
    BEV_CHECK(found != arrays_.end(), Data, "{}: no shard has a tensor for the parameter {}",
              dir_.string(), in_quotes(original));
    const Found& table = found->second[static_cast<size_t>(tensor)];
    BEV_CHECK(same_content(*copy.file, *copy.array, *table.file, *table.array), Data,
              "{}: {} is a copy of {}, but is not equal to it", copy.file->path().string(),
              in_quotes(copy.array->name), in_quotes(table.array->name));
  }
}

namespace {

// Tensor names without their last word (weight, bias).
struct TensorNameLine {
  std::string_view theirs, ours;
};

constexpr std::array<TensorNameLine, 14> kOutside{{
    {"embedding.word_embeddings", "embedding.tokens"},
    {"embedding.position_embeddings", "embedding.positions"},
    {"embedding.tokentype_embeddings", "embedding.types"},
    {"lm_head.dense", "lm_head.dense"},
    {"lm_head.norm", "lm_head.norm"},
    {"lm_head.layernorm", "lm_head.norm"},
    {"lm_head.layer_norm", "lm_head.norm"},
    {"lm_head", "lm_head"},
    {"pooler.dense", "binary_head.pooler"},
    {"binary_head", "binary_head.output"},
    {"final_norm", "final_norm"},
    {"final_layernorm", "final_norm"},
    {"output_layer", "head"},
    {"word_embeddings_for_head", "head"},
}};

// Tensor names within a layer. If Megatron-LM fuses a norm into the linear layer that follows, that
// layer holds the norm's weights (linear_qkv.layer_norm, linear_fc1.layer_norm).
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

// Tensor names within a decoder layer of a T5 that mean something else in other layers, or that
// these do not have.
constexpr std::array<TensorNameLine, 11> kInDecoderLayer{{
    {"post_attention_norm", "cross_norm"},
    {"post_attention_layernorm", "cross_norm"},
    {"pre_cross_attn_layernorm", "cross_norm"},
    {"inter_attention.query", "cross_attention.q"},
    {"cross_attention.linear_q", "cross_attention.q"},
    {"inter_attention.key_value", "cross_attention.kv"},
    {"cross_attention.linear_kv", "cross_attention.kv"},
    {"inter_attention.dense", "cross_attention.out"},
    {"cross_attention.linear_proj", "cross_attention.out"},
    {"post_inter_attention_norm", "norm2"},
    {"post_inter_attention_layernorm", "norm2"},
}};

bool drop_prefix(std::string_view& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return true;
}

// Splits "a.b.weight" into "a.b" and "weight", and "a.layer_norm_weight" into "a.layer_norm" and
// "weight".
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

std::optional<MegatronName> megatron_name(std::string_view name, bool is_t5) {
  drop_prefix(name, "language_model.");
  std::string_view stack;
  for (const std::string_view each : {"encoder.", "transformer.", "decoder."})
    if (stack.empty() && drop_prefix(name, each)) stack = each;
  MegatronName found;
  found.in_decoder = is_t5 && stack == "decoder.";
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
  std::string_view ours;
  if (is_in_layer && found.in_decoder) ours = find(kInDecoderLayer, parts->first);
  if (ours.empty())
    ours = is_in_layer ? find(kInLayer, parts->first) : find(kOutside, parts->first);
  if (ours.empty()) return std::nullopt;
  found.ours =
      format("{}{}{}.{}", is_t5 ? stack : "", is_in_layer ? "layers.*." : "", ours, parts->second);
  // The main branch keeps the bias of an LM head in its output layer.
  if (found.ours == "head.bias") found.ours = "lm_head.bias";
  return found;
}

bool is_megatron_buffer(std::string_view name) {
  return name.ends_with("_extra_state") || name.ends_with("inv_freq");
}

}  // namespace bev
