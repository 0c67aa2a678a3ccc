// A model as a list of parts, each with its specification. A family (model/family/) turns a
// configuration into a ModelSpec; modules read their specification only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/choices.h"
#include "data/batch.h"
#include "model/losses.h"
#include "param/param_spec.h"

namespace bev {

// Names that checkpoints of other programs are mapped to.
inline constexpr const char* kTokenTable = "embedding.tokens.weight";
inline constexpr const char* kHeadWeight = "head.weight";  // absent if it is tied

struct DropoutSpec {
  double probability = 0;
  uint64_t key = 0;  // unique in the model
};

struct NormSpec {
  NormKind kind{};
  double eps = 1e-5;
  Replica tensor = Replica::Same;  // gradients over a tensor region: a member may have some rows
};

// An embedding table, or the matrix of a head. Parts that name the same table share it.
struct TableSpec {
  std::string name;
  int64_t rows = 0, width = 0;
  // Over a tensor region, tables of tokens are cut by rows and those of relative positions by
  // heads.
  Role role = Role::TokenTable;
  Init init{};
  Replica tensor = Replica::Same;  // if it is not cut
};

// Rotary positions.
struct RopeSpec {
  int64_t dim = 0, positions = 0;  // rotated dims of a head
  double base = 10000;
  RopeScaling scaling = RopeScaling::None;
  double factor = 8, low = 1, high = 4;  // of RopeScaling::Llama3
  int64_t original_positions = 8192;
  bool operator==(const RopeSpec&) const = default;
};

// Relative positions: a bias of the scores by head and distance.
struct RelativeBiasSpec {
  TableSpec table;  // [buckets, heads]
  bool bidirectional = true;
  int64_t max_distance = 128;
};

struct AttentionSpec {
  int64_t width = 0, heads = 0, kv_heads = 0, head_dim = 0;
  double scale = 1;    // of the scores
  int64_t window = 0;  // keys that a query attends to; 0: all
  bool causal = true;
  bool masks_padding = true;
  bool qkv_bias = true, out_bias = true;
  bool recompute_core = false;
  std::optional<NormSpec> qk_norm{};
  std::optional<RopeSpec> rope{};
  std::optional<RelativeBiasSpec> relative{};
  DropoutSpec dropout{};  // of the probabilities
  Init init{}, output_init{};
};

struct MlpSpec {
  int64_t width = 0, ffn = 0;
  Activation activation{};
  bool bias = true;
  bool recompute_activation = false;
  Init init{}, output_init{};
};

struct BlockSpec {
  std::string name;    // "layers.3"
  int64_t number = 0;  // in the model, from 0
  NormSpec norm{};
  bool pre_norm = true;  // else the norms follow the residual sums
  bool recompute_norms = false;
  AttentionSpec attention{};
  std::optional<AttentionSpec> cross{};  // its keys and values come from the context
  MlpSpec mlp{};
  DropoutSpec attention_dropout{}, cross_dropout{}, mlp_dropout{};

  std::vector<const TableSpec*> tables() const {
    if (!attention.relative) return {};
    return {&attention.relative->table};
  }
};

struct FinalNormSpec {
  std::string name;
  int64_t width = 0;
  NormSpec norm{};
};

struct EmbeddingSpec {
  TableSpec tokens;
  std::optional<TableSpec> positions{}, types{};
  std::optional<FinalNormSpec> norm{};
  DropoutSpec dropout{};

  std::vector<const TableSpec*> tables() const {
    std::vector<const TableSpec*> all{&tokens};
    for (const auto& table : {&positions, &types})
      if (*table) all.push_back(&**table);
    return all;
  }
};

struct LmHeadSpec {
  TableSpec table;
  int loss = 0;  // index into ModelSpec::losses
  double smoothing = 0, z_loss = 0;
  int64_t chunk = 0;  // tokens whose logits exist at the same time
  double input_scale = 1;
  std::string bias{};  // name; empty: none

  std::vector<const TableSpec*> tables() const { return {&table}; }
};

// Predicts marked tokens: norm(activation(dense(x))) W^T + bias (Devlin et al. 2018).
struct MaskedLmHeadSpec {
  std::string name;
  LmHeadSpec logits;
  Activation activation{};
  NormSpec norm{};
  Init init{};

  std::vector<const TableSpec*> tables() const { return logits.tables(); }
};

// Classifies sequences by their first token: linear(tanh(dense(x))).
struct ClassifierSpec {
  std::string name;
  int64_t width = 0, classes = 2;
  int loss = 0;  // index into ModelSpec::losses
  Init init{};
};

// Compares queries with contexts by their first tokens: softmax over the contexts of all pairs of a
// micro-batch. Reads the state of the queries, with that of the contexts as its context; or the
// state of a joined text.
struct PairHeadSpec {
  std::vector<std::string> towers;  // prefixes of names, a tower for each state
  int64_t width = 0;
  int64_t projection = 0;  // size of the embeddings; 0: width, without a projection
  double scale = 1;        // of the scores
  int64_t pairs = 0;       // of a micro-batch, on all members of the batch region
  int loss = 0;            // index into ModelSpec::losses; the accuracies follow it
  std::vector<int64_t> top_k{};
  Init init{};
};

// Adds the context to the hidden state.
struct AddSpec {};

// A part of the model. It reads a hidden state and replaces it, or creates it (embedding), or only
// reads it (head).
struct PartSpec {
  int hidden = 0;  // index into ModelSpec::hidden
  std::variant<EmbeddingSpec, BlockSpec, FinalNormSpec, AddSpec, LmHeadSpec, MaskedLmHeadSpec,
               ClassifierSpec, PairHeadSpec>
      is;
  // Another hidden state that it reads: a sum, blocks with cross attention, or a pair head.
  std::optional<int> context{};

  bool touches(int state) const { return hidden == state || context == state; }
};

// The tables of a part, which other parts may name too.
inline std::vector<const TableSpec*> tables_of(const PartSpec& part) {
  return std::visit(
      [](const auto& spec) {
        if constexpr (requires { spec.tables(); }) return spec.tables();
        return std::vector<const TableSpec*>{};
      },
      part.is);
}

// A residual stream [tokens of a text, width].
struct HiddenSpec {
  std::string name;
  int64_t width = 0;
  int text = 0;  // index into ModelSpec::batch
};

// Activation recomputation: the blocks of a stage that run forward again before their backward.
struct RecomputeSpec {
  int64_t blocks = 0;       // the first ones of a stage; negative: all
  int64_t group = 1;        // blocks of which only the first input is kept
  bool distribute = false;  // members of a tensor region keep a shard of that input each
};

// Parts up to `end`, split over `stages` stages.
struct Segment {
  size_t end = 0;
  int64_t stages = 0;
};

struct ModelSpec {
  BatchSpec batch{};  // fields of a micro-batch in training
  std::vector<HiddenSpec> hidden{};
  std::vector<LossSpec> losses{};
  std::vector<PartSpec> parts{};
  RecomputeSpec recompute{};
  std::vector<Segment> segments{};  // empty: all stages share all parts
};

}  // namespace bev
