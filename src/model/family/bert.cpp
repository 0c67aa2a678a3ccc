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

ModelSpec bert_spec(const Config& c) {
  const ModelShape m = resolve_model(c);
  const bool pre_norm = c.model.norm_placement == NormPlacement::Pre;
  const NormSpec norm = norm_spec(c, replica_between_regions(c));
  const Init init = Init::normal(c.model.init_std);
  ModelSpec spec{.batch = masked_batch(c.train.sequence, most_predictions(c)),
                 .hidden = {{"hidden", m.width}},
                 .losses = {{"lm"}},
                 .recompute = recompute_spec(c.recompute)};
  const TableSpec tokens = table_spec(c, kTokenTable, m.padded_vocab, m.width, Role::TokenTable);
  EmbeddingSpec embedding{
      .tokens = tokens,
      .positions =
          table_spec(c, "embedding.positions.weight", m.positions, m.width, Role::PositionTable),
      .dropout = dropout_spec(c, c.model.hidden_dropout, 0, DropoutSite::Embedding)};
  // Megatron-LM's BERT has token types for pairs only; that of Hugging Face always has them.
  if (c.model.binary_head || !pre_norm)
    embedding.types =
        table_spec(c, "embedding.types.weight", kTokenTypes, m.width, Role::TypeTable);
  if (!pre_norm) embedding.norm = FinalNormSpec{"embedding.norm", m.width, norm};
  spec.parts.push_back({0, embedding});
  for (int64_t i = 0; i < m.layers; ++i) {
    BlockSpec block = block_spec(c, m, i);
    block.pre_norm = pre_norm;
    block.attention.causal = false;
    spec.parts.push_back({0, block});
  }
  if (pre_norm) spec.parts.push_back({0, FinalNormSpec{"final_norm", m.width, norm}});
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
