#include <cmath>

#include "config/resolve.h"
#include "model/family/family.h"

namespace bev {

namespace {

// Segments of a sample.
constexpr int64_t kTokenTypes = 2;

// Tokens of a sample that may be predicted.
int64_t most_predictions(const Config& c) {
  if (c.data.max_predictions > 0) return c.data.max_predictions;
  return static_cast<int64_t>(std::ceil(c.data.mask_prob * static_cast<double>(c.train.sequence)));
}

}  // namespace

void add_encoder(const Config& c, const EncoderPlace& place, bool has_types, ModelSpec& spec) {
  const ModelShape m = resolve_model(c);
  const bool pre_norm = c.model.norm_placement == NormPlacement::Pre;
  const NormSpec norm = norm_spec(c, replica_between_regions(c));
  const int64_t first_block = place.number * m.layers;
  const auto table = [&](const char* name, int64_t rows, Role role) {
    return table_spec(c, place.prefix + name, rows, m.width, role);
  };
  EmbeddingSpec embedding{
      .tokens = table(kTokenTable, m.padded_vocab, Role::TokenTable),
      .positions = table("embedding.positions.weight", m.positions, Role::PositionTable),
      .dropout = dropout_spec(c, c.model.hidden_dropout, first_block, DropoutSite::Embedding)};
  if (has_types) embedding.types = table("embedding.types.weight", kTokenTypes, Role::TypeTable);
  if (!pre_norm) embedding.norm = FinalNormSpec{place.prefix + "embedding.norm", m.width, norm};
  spec.parts.push_back({place.number, embedding});
  for (int64_t i = 0; i < m.layers; ++i) {
    BlockSpec block = block_spec(c, m, first_block + i);
    block.name = place.prefix + "layers." + std::to_string(i);
    block.pre_norm = pre_norm;
    block.attention.causal = false;
    spec.parts.push_back({place.number, block});
  }
  if (pre_norm)
    spec.parts.push_back({place.number, FinalNormSpec{place.prefix + "final_norm", m.width, norm}});
}

ModelSpec bert_spec(const Config& c) {
  const ModelShape m = resolve_model(c);
  const bool pre_norm = c.model.norm_placement == NormPlacement::Pre;
  const Init init = Init::normal(c.model.init_std);
  ModelSpec spec{.batch = masked_batch(c.train.sequence, most_predictions(c)),
                 .hidden = {{"hidden", m.width}},
                 .losses = {{"lm"}},
                 .recompute = recompute_spec(c.recompute)};
  // Megatron-LM's BERT has token types for pairs only; that of Hugging Face always has them.
  add_encoder(c, {}, c.model.binary_head || !pre_norm, spec);
  const TableSpec tokens = table_spec(c, kTokenTable, m.padded_vocab, m.width, Role::TokenTable);
  // Every tensor rank computes the heads' dense layers for the same rows.
  spec.parts.push_back({0, MaskedLmHeadSpec{.name = "lm_head",
                                            .logits = {.table = tokens,
                                                       .smoothing = smoothing(c, m.padded_vocab),
                                                       .z_loss = c.loss.z_loss,
                                                       .chunk = head_chunk(c)},
                                            .activation = c.model.head_activation,
                                            .norm = norm_spec(c, Replica::Same),
                                            .init = init}});
  if (!c.model.binary_head) return spec;
  // The first BERT of Megatron-LM, post-norm, called this loss "nsp loss".
  spec.losses.push_back({.name = pre_norm ? "sop" : "nsp", .unit = LossUnit::Sequence});
  spec.parts.push_back(
      {0, ClassifierSpec{.name = "binary_head", .width = m.width, .loss = 1, .init = init}});
  return spec;
}

}  // namespace bev
