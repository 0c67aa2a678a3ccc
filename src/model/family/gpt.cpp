#include "config/resolve.h"
#include "model/family/family.h"

namespace bev {

ModelSpec gpt_spec(const Config& c) {
  const ModelShape m = resolve_model(c);
  ModelSpec spec{.batch = causal_batch(c.train.sequence, c.data.is_packed()),
                 .hidden = {{"hidden", m.width}},
                 .losses = {{"lm"}},
                 .recompute = recompute_spec(c.recompute)};
  const TableSpec tokens = table_spec(c, kTokenTable, m.padded_vocab, m.width, Role::TokenTable);

  EmbeddingSpec embedding{
      .tokens = tokens,
      .dropout = dropout_spec(c, c.model.hidden_dropout, 0, DropoutSite::Embedding)};
  if (c.model.position == PositionKind::Learned)
    embedding.positions =
        table_spec(c, "embedding.positions.weight", m.positions, m.width, Role::PositionTable);
  spec.parts.push_back({0, embedding});
  for (int64_t i = 0; i < m.layers; ++i) spec.parts.push_back({0, block_spec(c, m, i)});
  spec.parts.push_back(
      {0, FinalNormSpec{"final_norm", m.width, norm_spec(c, replica_between_regions(c))}});
  LmHeadSpec head{.table = tokens,
                  .smoothing = smoothing(c, m.padded_vocab),
                  .z_loss = c.loss.z_loss,
                  .chunk = head_chunk(c)};
  if (!c.model.tied) head.table = table_spec(c, kHeadWeight, m.padded_vocab, m.width, Role::Head);
  spec.parts.push_back({0, head});
  return spec;
}

}  // namespace bev
