// Rules about ranks and what they divide.
#include <algorithm>

#include "base/format.h"
#include "base/integer.h"
#include "config/parse/notation.h"
#include "config/resolve.h"
#include "config/rules/rule.h"

namespace bev {

namespace {

using Found = std::optional<Problem>;

Found one_context_rank(const RuleInput& f) {
  const int64_t ranks = f.config.parallel.context;
  if (ranks == 1) return {};
  return Problem{.what = format("parallel.context {}: only 1 works in this version", ranks),
                 .where = f.where({"parallel.context"}),
                 .why = "no attention of this version reaches over ranks",
                 .legal = "1, or left out"};
}

// The word that this verb has for it.
std::string rank_count_flag(const RuleInput& f) {
  const auto origin = f.origins.find("parallel.ranks");
  const bool is_flag = origin != f.origins.end() && origin->second.kind == OriginKind::Flag;
  return is_flag ? origin->second.text : "--threads";
}

Found ranks_make_copies(const RuleInput& f) {
  const ParallelConfig& p = f.config.parallel;
  const int64_t one = p.tensor * p.context * p.pipeline;
  if (p.ranks % one == 0) return {};
  return Problem{.what = format("{} ranks are no whole number of copies of the model", p.ranks),
                 .where = f.where({"parallel.ranks", "parallel.tensor", "parallel.context",
                                   "parallel.pipeline"}),
                 .why = format("one copy takes {} tensor x {} context x {} pipeline = {} ranks",
                               p.tensor, p.context, p.pipeline, one),
                 .legal = format("{} {}", rank_count_flag(f), multiples_near(p.ranks, one))};
}

Found printing_ranks_are_a_list(const RuleInput& f) {
  if (RankList::parse(f.config.log.ranks)) return {};
  return Problem{.what = format("\"{}\" names no ranks", f.config.log.ranks),
                 .where = f.where({"log.ranks"}),
                 .why = "ranks are numbers from 0 on, with commas and dashes between",
                 .legal = "all, 0 or 0,2-5"};
}

Found heads_divide(const RuleInput& f) {
  const int64_t heads = f.config.model.heads, ranks = f.config.parallel.tensor;
  if (heads <= 0 || heads % ranks == 0) return {};
  return Problem{.what = format("{} heads do not divide over {} tensor ranks", heads, ranks),
                 .where = f.where({"model.heads", "parallel.tensor"}),
                 .why = "a rank computes whole heads, each the same number",
                 .legal = format("tensor {}; or heads {}", divisors_near(heads, ranks),
                                 multiples_near(heads, ranks))};
}

Found kv_heads_divide(const RuleInput& f) {
  const int64_t heads = f.config.model.kv_heads, ranks = f.config.parallel.tensor;
  if (heads <= 0 || heads % ranks == 0 || ranks % heads == 0) return {};
  return Problem{
      .what = format("{} key/value heads do not divide over {} tensor ranks", heads, ranks),
      .where = f.where({"model.kv_heads", "parallel.tensor"}),
      .why =
          "either each rank has the same number of them, or each of them the same number of "
          "ranks",
      .legal = format("tensor {}, or a multiple of {}", divisors_near(heads, ranks), heads)};
}

Found ffn_divides(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  const int64_t ffn = m.ffn > 0 ? m.ffn : default_ffn(m.width, is_gated(m.activation));
  const int64_t ranks = f.config.parallel.tensor;
  if (ffn <= 0 || ffn % ranks == 0) return {};
  // One that follows from the width: where heads do not divide either, that says enough.
  if (m.ffn == 0 && m.heads % ranks != 0) return {};
  return Problem{
      .what = format("MLP inner size {} does not divide over {} tensor ranks", ffn, ranks),
      .where = m.ffn > 0
                   ? f.where({"model.ffn", "parallel.tensor"})
                   : f.where({"model.ffn", "model.width", "model.activation", "parallel.tensor"}),
      .why = "each rank computes the same number of inner columns",
      .legal =
          format("tensor {}; or ffn {}", divisors_near(ffn, ranks), multiples_near(ffn, ranks))};
}

struct TextLength {
  std::string_view path;
  int64_t tokens;
};

// The lengths of the texts of a sample.
std::vector<TextLength> text_lengths(const Config& c) {
  std::vector<TextLength> lengths{{"train.sequence", c.train.sequence}};
  if (const int64_t decoder = decoder_sequence(c); decoder != c.train.sequence)
    lengths.push_back({"train.decoder_sequence", decoder});
  return lengths;
}

Found tokens_divide(const RuleInput& f) {
  const ParallelConfig& p = f.config.parallel;
  for (const auto& [path, length] : text_lengths(f.config)) {
    const int64_t tokens = f.config.train.micro_batch * length;
    if (!p.sequence || tokens <= 0 || tokens % p.tensor == 0) continue;
    return Problem{
        .what = format("{} tokens do not divide over {} tensor ranks", tokens, p.tensor),
        .where = f.where({path, "train.micro_batch", "parallel.tensor", "parallel.sequence"}),
        .why = "between tensor regions each rank has the same number of tokens of a micro-batch",
        .legal =
            format("{} {}, or parallel.sequence false", path, multiples_near(length, p.tensor))};
  }
  return {};
}

Found chunk_layers_divide(const RuleInput& f) {
  const ParallelConfig& p = f.config.parallel;
  const int64_t layers = pipeline_blocks(f.config.model), together = p.pipeline * p.chunk_layers;
  if (p.chunk_layers == 0 || layers <= 0 || layers % together == 0) return {};
  const std::string where = f.where({"model.layers", "parallel.pipeline", "parallel.chunk_layers"});
  if (layers % p.pipeline != 0)
    return Problem{
        .what = format("{} layers do not divide over {} pipeline ranks", layers, p.pipeline),
        .where = where,
        .why = "with a number of layers for each stage, every rank has the same number of them",
        .legal = format("pipeline {}; or layers {}", divisors_near(layers, p.pipeline),
                        multiples_near(layers, p.pipeline))};
  const int64_t here = layers / p.pipeline;
  return Problem{
      .what = format("the {} layers of a pipeline rank are no whole number of stages of {}", here,
                     p.chunk_layers),
      .where = where,
      .why = format("{} layers on {} ranks are {} on each", layers, p.pipeline, here),
      .legal = format("chunk_layers {}", divisors_near(here, p.chunk_layers))};
}

Found chunks_given_once(const RuleInput& f) {
  const ParallelConfig& p = f.config.parallel;
  if (p.chunk_layers == 0 || (p.chunks == 1 && p.first_layers == 0 && p.last_layers == 0))
    return {};
  return Problem{
      .what = "the division of the layers is given twice",
      .where = f.where({"parallel.chunk_layers", "parallel.chunks", "parallel.first_layers",
                        "parallel.last_layers"}),
      .why = "the layers of each stage say how many stages there are, and that all are equal",
      .legal = "chunk_layers alone, or 0 beside the others"};
}

// 0: not known, another rule says why.
int64_t chunks_of(const RuleInput& f) {
  const ParallelConfig& p = f.config.parallel;
  if (p.chunk_layers == 0) return p.chunks;
  const int64_t layers = pipeline_blocks(f.config.model), together = p.pipeline * p.chunk_layers;
  return p.chunks == 1 && layers > 0 && layers % together == 0 ? layers / together : 0;
}

// With a border between encoder and decoder, every stage has layers of one of them.
Found t5_stages_have_layers(const RuleInput& f) {
  const ModelConfig& m = f.config.model;
  const ParallelConfig& p = f.config.parallel;
  if (m.family != ModelFamily::T5 || m.layers <= 0) return {};
  const int64_t decoder = m.decoder_layers > 0 ? m.decoder_layers : m.layers;
  const int64_t stages = p.pipeline * p.chunks, split = p.decoder_stage;
  const bool fits = stages == 1  ? split == 0
                    : split == 0 ? stages <= m.layers + decoder
                                 : split < stages && split <= m.layers && stages - split <= decoder;
  if (fits) return {};
  const std::string where = f.where({"model.layers", "model.decoder_layers", "parallel.pipeline",
                                     "parallel.chunks", "parallel.decoder_stage"});
  if (stages == 1)
    return Problem{.what = format("parallel.decoder_stage {} with one stage", split),
                   .where = where,
                   .why = "the only stage has the encoder and the decoder",
                   .legal = "parallel.decoder_stage 0, or parallel.pipeline above 1"};
  const int64_t least = std::max<int64_t>(1, stages - decoder);
  const int64_t most = std::min(stages - 1, m.layers);
  return Problem{
      .what = format("{} encoder and {} decoder layers do not fill {} stages{}", m.layers, decoder,
                     stages, split > 0 ? format(", with decoder_stage {}", split) : ""),
      .where = where,
      .why = "every stage holds at least one layer, of the encoder or of the decoder",
      .legal = least <= most ? format("parallel.decoder_stage {} to {}, or 0", least, most)
                             : format("pipeline x chunks at most {}", m.layers + decoder)};
}

Found stages_have_layers(const RuleInput& f) {
  if (f.config.model.family == ModelFamily::T5) return {};
  const ParallelConfig& p = f.config.parallel;
  const int64_t layers = pipeline_blocks(f.config.model), stages = p.pipeline * chunks_of(f);
  if (layers <= 0 || stages == 0) return {};
  const int64_t given = (p.first_layers > 0 ? 1 : 0) + (p.last_layers > 0 ? 1 : 0);
  const int64_t left = layers - p.first_layers - p.last_layers;
  const bool fits =
      stages == 1 ? given == 0 : left >= stages - given && (stages > given || left == 0);
  if (fits) return {};
  return Problem{
      .what = format("{} layers do not fill {} stages", layers, stages),
      .where = f.where({"model.layers", "parallel.pipeline", "parallel.chunks",
                        "parallel.first_layers", "parallel.last_layers"}),
      .why = format("every stage holds at least one layer; first and last are given {} and {}",
                    p.first_layers, p.last_layers),
      .legal =
          format("pipeline x chunks at most {}, with layers left for the stages between", layers)};
}

Found chunks_interleave(const RuleInput& f) {
  const ParallelConfig& p = f.config.parallel;
  const int64_t chunks = chunks_of(f);
  if (chunks == 0) return {};
  const bool several = chunks > 1;
  const bool interleaves =
      p.schedule == ScheduleKind::OneFOneB || p.schedule == ScheduleKind::Interleaved;
  if (several ? interleaves && p.pipeline > 1 : p.schedule != ScheduleKind::Interleaved) return {};
  return Problem{.what = format("{} chunks with {} pipeline ranks and the schedule {}", chunks,
                                p.pipeline, name_of_choice(p.schedule)),
                 .where = f.where({"parallel.chunks", "parallel.chunk_layers", "parallel.pipeline",
                                   "parallel.schedule"}),
                 .why = "the interleaved schedule, and no other, computes several chunks in turn",
                 .legal = "chunks 1; or several with pipeline above 1 and schedule interleaved"};
}

Found gradients_not_postponed(const RuleInput& f) {
  const ParallelConfig& p = f.config.parallel;
  if (p.zero < 2 || p.schedule != ScheduleKind::ZeroBubble) return {};
  return Problem{.what = format("parallel.zero {} with the schedule zero-bubble", p.zero),
                 .where = f.where({"parallel.zero", "parallel.schedule"}),
                 .why =
                     "gradients of one block exist at a time, and zero-bubble postpones those of "
                     "weights",
                 .legal = "zero 1, or another schedule"};
}

// Of the stage that has the most; 0: not known, another rule says why.
int64_t most_layers_of_a_stage(const RuleInput& f) {
  const ParallelConfig& p = f.config.parallel;
  if (f.config.model.family == ModelFamily::T5) {
    const ModelConfig& m = f.config.model;
    const int64_t decoder = m.decoder_layers > 0 ? m.decoder_layers : m.layers;
    const int64_t stages = p.pipeline * p.chunks, split = p.decoder_stage;
    if (m.layers <= 0 || t5_stages_have_layers(f)) return 0;
    if (stages == 1) return m.layers + decoder;
    if (split == 0) return std::max(m.layers, decoder);
    return std::max(div_ceil(m.layers, split), div_ceil(decoder, stages - split));
  }
  const int64_t given = (p.first_layers > 0 ? 1 : 0) + (p.last_layers > 0 ? 1 : 0);
  const int64_t sharing = p.pipeline * chunks_of(f) - given;
  const int64_t left = pipeline_blocks(f.config.model) - p.first_layers - p.last_layers;
  if (sharing < 0 || left < sharing) return 0;
  return std::max({p.first_layers, p.last_layers, sharing > 0 ? div_ceil(left, sharing) : 0});
}

Found recompute_within_stage(const RuleInput& f) {
  const int64_t layers = f.config.recompute.layers, most = most_layers_of_a_stage(f);
  if (most == 0 || layers <= most) return {};
  return Problem{
      .what = format("recompute.layers {} is more than the {} layer{} of {}", layers, most,
                     most == 1 ? "" : "s",
                     most == pipeline_blocks(f.config.model) ? "the model" : "any stage"),
      .where = f.where({"recompute.layers", "recompute.method", "model.layers", "parallel.pipeline",
                        "parallel.chunks", "parallel.chunk_layers", "parallel.first_layers",
                        "parallel.last_layers"}),
      .why =
          "it counts layers of each stage: those of a group, or those that are "
          "recomputed",
      .legal = format("{}, or 0 to recompute all, one at a time",
                      most == 1 ? "1" : format("1 to {}", most))};
}

Found distributed_inputs_are_kept(const RuleInput& f) {
  const RecomputeConfig& r = f.config.recompute;
  if (!r.distribute || r.granularity == Recompute::Full) return {};
  return Problem{
      .what = format("recompute.distribute with the granularity {}", name_of_choice(r.granularity)),
      .where = f.where({"recompute.distribute", "recompute.granularity"}),
      .why = "inputs of blocks are divided that are kept to compute the blocks again",
      .legal = "granularity full, or distribute false"};
}

Found distributed_inputs_are_whole(const RuleInput& f) {
  const ParallelConfig& p = f.config.parallel;
  if (!f.config.recompute.distribute || !p.sequence || p.tensor == 1) return {};
  return Problem{
      .what = "recompute.distribute with parallel.sequence",
      .where = f.where({"recompute.distribute", "parallel.sequence", "parallel.tensor"}),
      .why = "between tensor regions each rank has its own tokens only: nothing is kept twice",
      .legal = "distribute false, or parallel.sequence false"};
}

Found distributed_inputs_divide(const RuleInput& f) {
  const int64_t width = f.config.model.width, ranks = f.config.parallel.tensor;
  for (const auto& [path, length] : text_lengths(f.config)) {
    const int64_t tokens = f.config.train.micro_batch * length;
    if (!f.config.recompute.distribute || tokens <= 0 || width <= 0 ||
        (tokens % ranks) * (width % ranks) % ranks == 0)
      continue;
    return Problem{
        .what = format("{} tokens of width {} do not divide over {} tensor ranks", tokens, width,
                       ranks),
        .where = f.where(
            {path, "train.micro_batch", "model.width", "parallel.tensor", "recompute.distribute"}),
        .why = "of what enters a block each rank keeps the same number of elements",
        .legal = format("{} {}, or distribute false", path, multiples_near(length, ranks))};
  }
  return {};
}

}  // namespace

std::vector<Rule> parallel_rules() {
  return {
      {{"parallel.context"}, one_context_rank},
      {{"parallel.ranks", "parallel.tensor", "parallel.context", "parallel.pipeline"},
       ranks_make_copies},
      {{"log.ranks"}, printing_ranks_are_a_list},
      {{"model.heads", "parallel.tensor"}, heads_divide},
      {{"model.kv_heads", "parallel.tensor"}, kv_heads_divide},
      {{"model.ffn", "model.width", "model.activation", "model.heads", "parallel.tensor"},
       ffn_divides},
      {{"train.micro_batch", "train.sequence", "train.decoder_sequence", "model.family",
        "parallel.tensor", "parallel.sequence"},
       tokens_divide},
      {{"model.family", "model.shared_towers", "model.layers", "parallel.pipeline",
        "parallel.chunk_layers"},
       chunk_layers_divide},
      {{"parallel.chunk_layers", "parallel.chunks", "parallel.first_layers",
        "parallel.last_layers"},
       chunks_given_once},
      {{"model.family", "model.shared_towers", "model.layers", "parallel.pipeline",
        "parallel.chunks", "parallel.chunk_layers", "parallel.first_layers",
        "parallel.last_layers"},
       stages_have_layers},
      {{"model.family", "model.layers", "model.decoder_layers", "parallel.pipeline",
        "parallel.chunks", "parallel.decoder_stage"},
       t5_stages_have_layers},
      {{"model.family", "model.shared_towers", "model.layers", "parallel.chunks",
        "parallel.chunk_layers", "parallel.pipeline", "parallel.schedule"},
       chunks_interleave},
      {{"parallel.zero", "parallel.schedule"}, gradients_not_postponed},
      {{"recompute.layers", "model.family", "model.shared_towers", "model.layers",
        "model.decoder_layers", "parallel.pipeline", "parallel.chunks", "parallel.chunk_layers",
        "parallel.first_layers", "parallel.last_layers", "parallel.decoder_stage"},
       recompute_within_stage},
      {{"recompute.distribute", "recompute.granularity"}, distributed_inputs_are_kept},
      {{"recompute.distribute", "parallel.sequence", "parallel.tensor"},
       distributed_inputs_are_whole},
      {{"recompute.distribute", "train.micro_batch", "train.sequence", "train.decoder_sequence",
        "model.family", "model.width", "parallel.tensor"},
       distributed_inputs_divide},
  };
}

}  // namespace bev
