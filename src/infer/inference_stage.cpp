#include "infer/inference_stage.h"

#include <algorithm>

#include "base/check.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/relative_bias.h"

namespace bev {

InferenceStage::InferenceStage(const RankModel& model, AttentionCore& attention,
                               const DecoderCache& cache)
    : stage_(model.stages.front()),
      width_(model.shape.width),
      vocab_(model.shape.vocab),
      dtype_(model.params.dtype()),
      env_{.borders = {.tensor = model.env.borders.tensor,
                       .attention = attention,
                       .batch = model.env.borders.batch},
           .pass = {.training = false}},
      cache_(cache) {
  BEV_CHECK(model.stages.size() == 1, Internal, "a decoder needs one stage per rank");
  const PartRange parts = stage_.parts();
  for (size_t i = parts.first; i < parts.end; ++i) {
    const auto& part = model.spec.parts[i].is;
    if (const auto* block = std::get_if<BlockSpec>(&part))
      blocks_.emplace_back(*block, stage_.blocks()[blocks_.size()].params());
    if (const auto* head = std::get_if<LmHeadSpec>(&part)) chunk_ = head->chunk;
  }
  if (cache_.cross == nullptr) return;
  const auto decoder = std::find_if(blocks_.begin(), blocks_.end(),
                                    [](const DecodeBlock& b) { return b.has_cross_attention(); });
  encoder_blocks_ = static_cast<size_t>(decoder - blocks_.begin());
}

void InferenceStage::encode(Exec& ex, const TextView& text) {
  const ArenaScope scope(ex.scratch), kept(ex.keep);
  const Tensor x = ex.scratch.allocate({text.tokens_count(), width_}, dtype_, "infer.x");
  Embedding::Saved unused;
  stage_.embeddings().front().forward(ex, env_, text, x, unused);
  DecodeInputs in{text};
  if (!stage_.biases().empty()) in.bias = stage_.biases().front().forward(ex, env_, text.length);
  for (size_t i = 0; i < encoder_blocks_; ++i) blocks_[i].forward(ex, env_.borders, in, x, x);
  NormModule::Saved no_statistics;
  const Tensor normed = ex.scratch.allocate(x.shape, dtype_, "infer.context");
  stage_.norms().front().forward(ex, x, normed, no_statistics);
  for (size_t i = encoder_blocks_; i < blocks_.size(); ++i)
    blocks_[i].cache_context(ex, env_.borders, normed, *cache_.cross);
}

ConstTensor InferenceStage::decoder_bias(Exec& ex) const {
  if (cache_.cross == nullptr || stage_.biases().empty()) return {};
  const PositionBias::Params params = stage_.biases().back().params();
  const int64_t heads = params.table.value.shape[1];
  const Tensor bias = ex.scratch.allocate({heads, 1, cache_.places}, dtype_, "infer.bias");
  ops::RelativePositions positions = params.positions;
  positions.query_offset = cache_.places - 1;
  ops::relative_bias(ex, {.table = params.table.value, .positions = positions, .bias = bias});
  return reshape(bias, {heads, cache_.places});
}

void InferenceStage::forward(Exec& ex, const TextView& micro, ConstTensor input, Tensor output,
                             const InferenceOutputs& outputs) {
  ArenaScope scope(ex.scratch);
  const Shape shape{micro.tokens_count(), width_};
  const Tensor own = output.present() ? output : ex.scratch.allocate(shape, dtype_, "infer.x");
  ConstTensor x = input;
  if (!stage_.embeddings().empty()) {
    Embedding::Saved unused;
    stage_.embeddings().back().forward(ex, env_, micro, own, unused);
    x = own;
  }
  const DecodeInputs in{micro, decoder_bias(ex), cache_.cross};
  for (size_t i = encoder_blocks_; i <= blocks_.size(); ++i) {
    if (!outputs.hidden.empty()) ops::copy(ex, {.in = x, .out = outputs.hidden[i]});
    if (i == blocks_.size()) break;
    blocks_[i].forward(ex, env_.borders, in, x, own);
    x = own;
  }
  if (stage_.heads().empty()) return;
  ArenaScope kept(ex.keep);
  NormModule::Saved unused;
  const Tensor normed = outputs.final_norm.present()
                            ? outputs.final_norm
                            : ex.scratch.allocate(shape, dtype_, "infer.final_norm");
  stage_.norms().back().forward(ex, x, normed, unused);
  if (outputs.token_losses.present() || outputs.token_stats.present())
    score(ex, micro, normed, outputs);
  if (!outputs.logits.present()) return;
  ConstTensor rows = normed;
  if (outputs.logit_rows.present()) {
    const Tensor chosen =
        ex.scratch.allocate({outputs.logits.rows(), width_}, dtype_, "infer.rows");
    ops::embedding(ex, {.table = normed, .ids = outputs.logit_rows, .out = chosen});
    rows = chosen;
  }
  logits(ex, rows, outputs.logits);
}

void InferenceStage::logits(Exec& ex, ConstTensor x, Tensor logits) const {
  ArenaScope scope(ex.scratch);
  const LmHead& head = stage_.heads().front();
  if (head.input_scale() != 1) {
    const Tensor scaled = ex.scratch.allocate(x.shape, x.dtype, "head.input");
    ops::scale(ex, {.x = x, .factor = head.input_scale(), .y = scaled});
    x = scaled;
  }
  const auto here = [&](const Param& of) {
    return slice(ConstTensor(of.value), 0, 0, logits.shape[1]);
  };
  const bool has_bias = head.bias() != nullptr;
  ops::decode_gemm(ex, {.gemm = {.a = x,
                                 .b = here(head.weight()),
                                 .tb = ops::Transpose::Yes,
                                 .out = logits,
                                 .epilogue = has_bias ? ops::Epilogue::Bias : ops::Epilogue::None,
                                 .bias = has_bias ? here(*head.bias()) : ConstTensor{}}});
}

void InferenceStage::score(Exec& ex, const TextView& micro, ConstTensor x,
                           const InferenceOutputs& outputs) {
  const TensorRegion& region = env_.borders.tensor;
  const Param& table = stage_.heads().front().weight();
  const int64_t first = table.pieces.front().logical.row;
  const int64_t classes = std::min(table.value.rows(), vocab_ - first);
  const DType sums = accumulation_of(dtype_);
  for (int64_t begin = 0; begin < x.rows(); begin += chunk_) {
    ArenaScope scope(ex.scratch);
    const int64_t count = std::min(chunk_, x.rows() - begin);
    const ConstTensor targets = slice(micro.targets, 0, begin, count);
    const Tensor chunk = ex.scratch.allocate({count, classes}, dtype_, "head.logits");
    logits(ex, slice(x, 0, begin, count), chunk);
    Tensor stats;
    if (outputs.token_stats.present()) {
      stats = slice(outputs.token_stats, 0, begin, count);
    } else if (region.vocab_is_sharded()) {
      stats = ex.scratch.allocate({count, ops::kSoftmaxStats}, sums, "head.stats");
    }
    if (stats.present())
      ops::softmax_stats(
          ex, {.logits = chunk, .targets = targets, .column_begin = first, .stats = stats});
    if (region.vocab_is_sharded())
      ops::merge_softmax_stats(ex, {.parts = region.all_gather_parts(ex, stats), .stats = stats});
    if (outputs.token_losses.present())
      ops::cross_entropy(ex, {.logits = chunk,
                              .stats = stats,
                              .targets = targets,
                              .weight = slice(micro.weight, 0, begin, count),
                              .column_begin = first,
                              .classes = vocab_,
                              .loss = slice(outputs.token_losses, 0, begin, count)});
  }
}

}  // namespace bev
