#include <cmath>

#include "config/resolve.h"
#include "model/family/family.h"

namespace bev {

namespace {

// Hidden states; each has the text of its number.
constexpr int kEncoder = kEncoderText, kDecoder = kDecoderText;

EmbeddingSpec text_embedding(const Config& c, const ModelShape& m, int64_t first_block) {
  EmbeddingSpec spec{
      .tokens = table_spec(c, kTokenTable, m.padded_vocab, m.width, Role::TokenTable),
      .dropout = dropout_spec(c, c.model.hidden_dropout, first_block, DropoutSite::Embedding)};
  if (c.model.position == PositionKind::Learned)
    spec.positions =
        table_spec(c, "embedding.positions.weight", m.positions, m.width, Role::PositionTable);
  return spec;
}

std::optional<RelativeBiasSpec> relative_bias(const Config& c, const ModelShape& m,
                                              const char* table, bool bidirectional) {
  if (c.model.position != PositionKind::Relative) return {};
  return RelativeBiasSpec{
      .table = table_spec(c, table, c.model.relative_buckets, m.heads, Role::RelativeTable),
      .bidirectional = bidirectional,
      .max_distance = c.model.relative_distance};
}

BlockSpec encoder_block(const Config& c, const ModelShape& m, int64_t number) {
  BlockSpec block = block_spec(c, m, number);
  block.name = "encoder.layers." + std::to_string(number);
  block.attention.causal = false;
  block.attention.relative = relative_bias(c, m, "encoder.relative_bias.weight", true);
  return block;
}

// Blocks of the decoder are numbered after those of the encoder.
BlockSpec decoder_block(const Config& c, const ModelShape& m, int64_t number) {
  BlockSpec block = block_spec(c, m, number);
  block.name = "decoder.layers." + std::to_string(number - m.layers);
  AttentionSpec cross = block.attention;
  cross.causal = false;
  cross.masks_padding = c.model.mask_cross_padding;
  cross.dropout =
      dropout_spec(c, c.model.attention_dropout, number, DropoutSite::CrossProbabilities);
  block.cross = cross;
  block.cross_dropout = dropout_spec(c, c.model.hidden_dropout, number, DropoutSite::Cross);
  block.attention.relative = relative_bias(c, m, "decoder.relative_bias.weight", false);
  return block;
}

}  // namespace

ModelSpec t5_spec(const Config& c) {
  const ModelShape m = resolve_model(c);
  const NormSpec norm = norm_spec(c, replica_between_regions(c));
  ModelSpec spec{.batch = encoder_decoder_batch(c.train.sequence, decoder_sequence(c)),
                 .hidden = {{"encoder", m.width, kEncoderText}, {"decoder", m.width, kDecoderText}},
                 .losses = {{"lm"}},
                 .recompute = recompute_spec(c.recompute)};
  spec.parts.push_back({kEncoder, text_embedding(c, m, 0)});
  for (int64_t i = 0; i < m.layers; ++i) spec.parts.push_back({kEncoder, encoder_block(c, m, i)});
  spec.parts.push_back({kEncoder, FinalNormSpec{"encoder.final_norm", m.width, norm}});
  const size_t encoder_end = spec.parts.size();

  spec.parts.push_back({kDecoder, text_embedding(c, m, m.layers)});
  for (int64_t i = 0; i < m.decoder_layers; ++i)
    spec.parts.push_back({kDecoder, decoder_block(c, m, m.layers + i), kEncoder});
  spec.parts.push_back({kDecoder, FinalNormSpec{"decoder.final_norm", m.width, norm}});
  LmHeadSpec head{.table = table_spec(c, kTokenTable, m.padded_vocab, m.width, Role::TokenTable),
                  .smoothing = smoothing(c, m.padded_vocab),
                  .z_loss = c.loss.z_loss,
                  .chunk = head_chunk(c)};
  if (!c.model.tied) head.table = table_spec(c, kHeadWeight, m.padded_vocab, m.width, Role::Head);
  if (c.model.scale_head_input) head.input_scale = 1 / std::sqrt(static_cast<double>(m.width));
  if (c.model.head_bias) head.bias = "lm_head.bias";
  spec.parts.push_back({kDecoder, head});

  if (const int64_t first = decoder_stage(c); first > 0) {
    const int64_t stages = c.parallel.pipeline * pipeline_chunks(c);
    spec.segments = {{encoder_end, first}, {spec.parts.size(), stages - first}};
  }
  return spec;
}

}  // namespace bev
