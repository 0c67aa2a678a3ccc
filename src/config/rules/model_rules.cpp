// Rules about the shape of the model.
#include "base/format.h"
#include "config/resolve.h"
#include "config/rules/rule.h"

namespace bev {

namespace {

using Found = std::optional<Problem>;

Problem missing(std::string_view path, std::string_view meaning, std::string_view example) {
  return {.what = format("{} is missing", path),
          .where = "neither the file, nor the command line, nor a preset sets it",
          .why = format("{} has no default", meaning),
          .legal = format("--{} {}, or a shape by name: --model.preset gpt2-124m", path, example)};
}

Found layers_given(const RuleInput& f) {
  if (f.config.model.layers > 0) return {};
  return missing("model.layers", "the number of transformer blocks", "12");
}

Found width_given(const RuleInput& f) {
  if (f.config.model.width > 0) return {};
  return missing("model.width", "the size of the hidden state", "768");
}

Found heads_given(const RuleInput& f) {
  if (f.config.model.heads > 0) return {};
  return missing("model.heads", "the number of attention heads", "12");
}

Found vocab_given(const RuleInput& f) {
  if (f.config.model.vocab > 0) return {};
  return missing("model.vocab", "the size of the vocabulary", "50257");
}

// Size of one head, 0 when it cannot be known.
int64_t head_dim(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  if (m.head_dim > 0) return m.head_dim;
  return m.width > 0 && m.heads > 0 && m.width % m.heads == 0 ? m.width / m.heads : 0;
}

Found heads_divide_width(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  if (m.head_dim > 0 || m.width <= 0 || m.heads <= 0 || m.width % m.heads == 0) return {};
  return Problem{
      .what = format("width {} is not a multiple of {} heads", m.width, m.heads),
      .where = f.where({"model.width", "model.heads"}),
      .why = format("each head gets width / heads numbers, and {} / {} leaves {}", m.width, m.heads,
                    m.width % m.heads),
      .legal = format("width {}; heads {}; or give the size of a head in model.head_dim",
                      multiples_near(m.width, m.heads), divisors_near(m.width, m.heads))};
}

Found kv_heads_divide_heads(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  if (m.kv_heads <= 0 || m.heads <= 0 || m.heads % m.kv_heads == 0) return {};
  return Problem{
      .what = format("{} heads cannot share {} key/value heads evenly", m.heads, m.kv_heads),
      .where = f.where({"model.heads", "model.kv_heads"}),
      .why = m.kv_heads > m.heads
                 ? format("there are more key/value heads ({}) than query heads ({})", m.kv_heads,
                          m.heads)
                 : format("each key/value head serves heads / kv_heads query heads, and {} / {} "
                          "leaves {}",
                          m.heads, m.kv_heads, m.heads % m.kv_heads),
      .legal = format("kv_heads {}, or 0 for as many as query heads",
                      divisors_near(m.heads, m.kv_heads))};
}

// The largest head that attention is written for; the range of model.head_dim says the same.
constexpr int64_t kMaxHeadDim = 512;

Found head_not_too_large(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  const int64_t size = head_dim(f);
  if (m.head_dim > 0 || size <= kMaxHeadDim) return {};
  return Problem{.what = format("a head has {} numbers", size),
                 .where = f.where({"model.width", "model.heads"}),
                 .why = format("width {} / {} heads = {}; attention handles at most {}", m.width,
                               m.heads, size, kMaxHeadDim),
                 .legal = format("at least {} heads", (m.width + kMaxHeadDim - 1) / kMaxHeadDim)};
}

Found rotary_part_is_even(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  const int64_t size = head_dim(f);
  if (m.position != PositionKind::Rope || size == 0) return {};
  const auto rotary = static_cast<int64_t>(static_cast<double>(size) * m.rope_fraction);
  if (rotary > 0 && rotary % 2 == 0) return {};
  std::string legal;
  if (size % 2 == 0) legal = "model.rope_fraction 1, or 0.5 where that is even; ";
  return Problem{
      .what = rotary == 0
                  ? std::string("rotary positions turn no part of a head")
                  : format("rotary positions turn {} numbers of each head, an odd count", rotary),
      .where = f.where({"model.position", "model.head_dim", "model.rope_fraction"}),
      .why = format("numbers turn in pairs; head size {} x rope_fraction {} = {}", size,
                    m.rope_fraction, rotary),
      .legal = legal + "a head size and fraction whose product is even and at least 2"};
}

Found scaling_needs_rope(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  if (m.rope_scaling == RopeScaling::None || m.position == PositionKind::Rope) return {};
  return Problem{
      .what = "rotary frequencies are stretched, but positions are not rotary",
      .where = f.where({"model.rope_scaling", "model.position"}),
      .why = format("with position {} there are no rotary frequencies", name_of_choice(m.position)),
      .legal = "model.position rope, or model.rope_scaling none"};
}

Found scaling_bounds_in_order(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  if (m.rope_scaling == RopeScaling::None || m.rope_low < m.rope_high) return {};
  return Problem{.what = "rope_low must lie below rope_high",
                 .where = f.where({"model.rope_low", "model.rope_high"}),
                 .why = format("frequencies between the two are blended, and {} is not below {}",
                               m.rope_low, m.rope_high),
                 .legal = "Llama 3 has rope_low 1 and rope_high 4"};
}

Found inner_size_not_zero(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  if (m.ffn > 0 || m.width <= 0 || default_ffn(m.width, is_gated(m.activation)) > 0) return {};
  return Problem{.what = format("the MLP of width {} would have an inner size of 0", m.width),
                 .where = f.where({"model.width", "model.ffn", "model.activation"}),
                 .why =
                     "with a gated activation the default is 8/3 x width, rounded down to a "
                     "multiple of 64",
                 .legal = format("model.ffn {}, or a width of at least 24", m.width * 8 / 3 + 1)};
}

// BERT's parts: see model/family.
Found bert_options(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  if (m.family != ModelFamily::Bert) return {};
  Misfits misfits;
  misfits.require(m.position == PositionKind::Learned, "model.position", "learned");
  misfits.require(m.tied, "model.tied", "true");
  misfits.require(m.window == 0, "model.window", "0");
  misfits.require(!is_gated(m.head_activation), "model.head_activation", "one without a gate");
  const DataConfig& d = f.config.data;
  misfits.require(!d.is_packed(), "data.reset_attention and data.separate_sequences", "false");
  misfits.require(!d.mask_eod && !d.reset_positions, "data.mask_eod and data.reset_positions",
                  "false");
  if (misfits.text().empty()) return {};
  return Problem{
      .what = "model.family bert does not have these options",
      .where = f.where({"model.family", "model.position", "model.tied", "model.window",
                        "model.head_activation", "data.reset_attention", "data.separate_sequences",
                        "data.mask_eod", "data.reset_positions"}),
      .why = "BERT has learned positions, a tied LM head and attention to all tokens",
      .legal = misfits.text()};
}

// T5's parts: see model/family.
Found t5_options(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  if (m.family != ModelFamily::T5) return {};
  Misfits misfits;
  misfits.require(m.position == PositionKind::Learned || m.position == PositionKind::Relative,
                  "model.position", "learned or relative");
  misfits.require(m.window == 0, "model.window", "0");
  misfits.require(!m.qk_norm, "model.qk_norm", "false");
  misfits.require(m.tied || !m.scale_head_input, "model.scale_head_input",
                  "false without model.tied");
  const DataConfig& d = f.config.data;
  misfits.require(!d.is_packed(), "data.reset_attention and data.separate_sequences", "false");
  misfits.require(!d.mask_eod && !d.reset_positions, "data.mask_eod and data.reset_positions",
                  "false");
  const ParallelConfig& p = f.config.parallel;
  misfits.require(p.first_layers == 0 && p.last_layers == 0,
                  "parallel.first_layers and parallel.last_layers", "0");
  misfits.require(p.chunk_layers == 0, "parallel.chunk_layers", "0 (use parallel.chunks)");
  if (misfits.text().empty()) return {};
  return Problem{
      .what = "model.family t5 does not have these options",
      .where = f.where({"model.family", "model.position", "model.window", "model.qk_norm",
                        "model.tied", "model.scale_head_input", "data.reset_attention",
                        "data.separate_sequences", "data.mask_eod", "data.reset_positions",
                        "parallel.first_layers", "parallel.last_layers", "parallel.chunk_layers"}),
      .why =
          "a T5 reads a text with its encoder and predicts another one with its decoder; the "
          "stages of each have about the same number of layers",
      .legal = misfits.text()};
}

Found options_of_t5(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  if (m.family == ModelFamily::T5) return {};
  Misfits misfits;
  misfits.require(m.position != PositionKind::Relative, "model.position", "learned, rope or none");
  misfits.require(m.decoder_layers == 0, "model.decoder_layers", "0");
  misfits.require(m.scale_attention, "model.scale_attention", "true");
  misfits.require(!m.scale_head_input, "model.scale_head_input", "false");
  misfits.require(m.head_bias, "model.head_bias", "true");
  misfits.require(m.mask_cross_padding, "model.mask_cross_padding", "true");
  misfits.require(f.config.train.decoder_sequence == 0, "train.decoder_sequence", "0");
  misfits.require(f.config.parallel.decoder_stage == 0, "parallel.decoder_stage", "0");
  if (misfits.text().empty()) return {};
  return Problem{
      .what = format("model.family {} has no encoder beside a decoder", name_of_choice(m.family)),
      .where =
          f.where({"model.family", "model.position", "model.decoder_layers",
                   "model.scale_attention", "model.scale_head_input", "model.head_bias",
                   "model.mask_cross_padding", "train.decoder_sequence", "parallel.decoder_stage"}),
      .why = "these options are T5's",
      .legal = format("model.family t5, which `bevatron train pretrain_t5.py ...` sets; or {}",
                      misfits.text())};
}

Found far_buckets_reach(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  const int64_t near = m.relative_buckets / 2;
  if (m.position != PositionKind::Relative) return {};
  if (m.relative_buckets < 4)
    return Problem{
        .what = format("model.relative_buckets {} is too few", m.relative_buckets),
        .where = f.where({"model.relative_buckets"}),
        .why = "an encoder needs two for the tokens before a token and two for those after it",
        .legal = "model.relative_buckets at least 4"};
  if (m.relative_distance > near) return {};
  return Problem{
      .what = format("model.relative_distance {} leaves nothing for far positions",
                     m.relative_distance),
      .where = f.where({"model.relative_buckets", "model.relative_distance"}),
      .why = format("{} of {} buckets count single tokens, the others grow up to the largest "
                    "distance",
                    near, m.relative_buckets),
      .legal = format("model.relative_distance at least {}", near + 1)};
}

Found others_have_pre_norm(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  const bool is_encoder = m.family == ModelFamily::Bert || m.family == ModelFamily::Biencoder;
  if (is_encoder || m.norm_placement == NormPlacement::Pre) return {};
  return Problem{.what = "model.norm_placement post needs model.family bert or biencoder",
                 .where = f.where({"model.family", "model.norm_placement"}),
                 .why = format("the blocks of a {} have their norms before attention and MLP",
                               name_of_choice(m.family)),
                 .legal = "model.norm_placement pre, or model.family bert or biencoder"};
}

// Products of sizes that each lie in their range must not leave 64 bits anywhere in the program.
Found sizes_fit(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  const double heads = static_cast<double>(m.heads) * static_cast<double>(head_dim(f));
  const double inner = static_cast<double>(m.ffn > 0 ? m.ffn : 4 * m.width);
  const double block = static_cast<double>(m.width) * (4 * heads + 3 * inner);
  const double parameters = static_cast<double>(m.layers + m.decoder_layers) * block +
                            2.0 * static_cast<double>(m.width) *
                                static_cast<double>(m.vocab + m.positions + m.vocab_multiple);
  constexpr double kMost = 1e15;
  if (parameters <= kMost) return {};
  return Problem{
      .what = "the model has more parameters than can be counted",
      .where = f.where({"model.layers", "model.width", "model.ffn", "model.vocab"}),
      .why = format("about {:.3g} parameters; the largest known models have 1e13", parameters),
      .legal = format("at most {:.0e} parameters", kMost)};
}

}  // namespace

std::vector<Rule> model_rules() {
  return {
      {{"model.layers"}, layers_given, true},
      {{"model.width"}, width_given, true},
      {{"model.heads"}, heads_given, true},
      {{"model.vocab"}, vocab_given, true},
      {{"model.width", "model.heads", "model.head_dim"}, heads_divide_width},
      {{"model.heads", "model.kv_heads"}, kv_heads_divide_heads},
      {{"model.width", "model.heads", "model.head_dim"}, head_not_too_large},
      {{"model.width", "model.heads", "model.head_dim", "model.position", "model.rope_fraction"},
       rotary_part_is_even},
      {{"model.rope_scaling", "model.position"}, scaling_needs_rope},
      {{"model.rope_scaling", "model.rope_low", "model.rope_high"}, scaling_bounds_in_order},
      {{"model.width", "model.ffn", "model.activation"}, inner_size_not_zero},
      {{"model.family", "model.position", "model.tied", "model.window", "model.head_activation",
        "data.reset_attention", "data.separate_sequences", "data.mask_eod", "data.reset_positions"},
       bert_options},
      {{"model.family", "model.position", "model.window", "model.qk_norm", "model.tied",
        "model.scale_head_input", "data.reset_attention", "data.separate_sequences",
        "data.mask_eod", "data.reset_positions", "parallel.first_layers", "parallel.last_layers",
        "parallel.chunk_layers"},
       t5_options},
      {{"model.family", "model.position", "model.decoder_layers", "model.scale_attention",
        "model.scale_head_input", "model.head_bias", "model.mask_cross_padding",
        "train.decoder_sequence", "parallel.decoder_stage"},
       options_of_t5},
      {{"model.position", "model.relative_buckets", "model.relative_distance"}, far_buckets_reach},
      {{"model.family", "model.norm_placement"}, others_have_pre_norm},
      {{"model.layers", "model.decoder_layers", "model.width", "model.heads", "model.head_dim",
        "model.ffn", "model.vocab", "model.vocab_multiple", "model.positions"},
       sizes_fit},
  };
}

}  // namespace bev
