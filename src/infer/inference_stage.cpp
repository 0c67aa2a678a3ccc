#include "infer/inference_stage.h"

#include <algorithm>

#include "base/check.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace bev {

InferenceStage::InferenceStage(const RankModel& model, AttentionCore& attention)
    : stage_(model.stages.front()),
      width_(model.shape.width),
      vocab_(model.shape.vocab),
      dtype_(model.params.dtype()),
      env_{.borders = {.tensor = model.env.borders.tensor,
                       .attention = attention,
                       .batch = model.env.borders.batch},
           .pass = {.training = false}} {
  BEV_CHECK(model.stages.size() == 1, Internal, "a decoder needs one stage per rank");
  const PartRange parts = stage_.parts();
  for (size_t i = parts.first; i < parts.end; ++i) {
    const auto& part = model.spec.parts[i].is;
    if (const auto* block = std::get_if<BlockSpec>(&part))
      blocks_.emplace_back(*block, stage_.blocks()[blocks_.size()].params());
    if (const auto* head = std::get_if<LmHeadSpec>(&part)) chunk_ = head->chunk;
  }
}

void InferenceStage::forward(Exec& ex, const TextView& micro, ConstTensor input, Tensor output,
                             const InferenceOutputs& outputs) {
  ArenaScope scope(ex.scratch);
  const Shape shape{micro.tokens_count(), width_};
  const Tensor own = output.present() ? output : ex.scratch.allocate(shape, dtype_, "infer.x");
  ConstTensor x = input;
  if (!stage_.embeddings().empty()) {
    Embedding::Saved unused;
    stage_.embeddings().front().forward(ex, env_, micro, own, unused);
    x = own;
  }
  for (size_t i = 0; i <= blocks_.size(); ++i) {
    if (!outputs.hidden.empty()) ops::copy(ex, {.in = x, .out = outputs.hidden[i]});
    if (i == blocks_.size()) break;
    blocks_[i].forward(ex, env_.borders, micro, x, own);
    x = own;
  }
  if (stage_.heads().empty()) return;
  ArenaScope kept(ex.keep);
  NormModule::Saved unused;
  const Tensor normed = outputs.final_norm.present()
                            ? outputs.final_norm
                            : ex.scratch.allocate(shape, dtype_, "infer.final_norm");
  stage_.norms().front().forward(ex, x, normed, unused);
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
  logits(ex, rows, stage_.heads().front().weight().value, outputs.logits);
}

void InferenceStage::logits(Exec& ex, ConstTensor x, ConstTensor weight, Tensor logits) {
  ops::decode_gemm(ex, {.gemm = {.a = x, .b = weight, .tb = ops::Transpose::Yes, .out = logits}});
}

void InferenceStage::score(Exec& ex, const TextView& micro, ConstTensor x,
                           const InferenceOutputs& outputs) {
  const TensorRegion& region = env_.borders.tensor;
  const Param& table = stage_.heads().front().weight();
  const int64_t first = table.pieces.front().logical.row;
  const ConstTensor weight =
      slice(ConstTensor(table.value), 0, 0, std::min(table.value.rows(), vocab_ - first));
  const DType sums = accumulation_of(dtype_);
  for (int64_t begin = 0; begin < x.rows(); begin += chunk_) {
    ArenaScope scope(ex.scratch);
    const int64_t count = std::min(chunk_, x.rows() - begin);
    const ConstTensor targets = slice(micro.targets, 0, begin, count);
    const Tensor chunk = ex.scratch.allocate({count, weight.rows()}, dtype_, "head.logits");
    logits(ex, slice(x, 0, begin, count), weight, chunk);
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
