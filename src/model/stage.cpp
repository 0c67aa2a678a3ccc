#include "model/stage.h"

#include "ops/elementwise.h"

namespace bev {

Stage::Stage(ParamStore& params, const Blueprint& b, const StageRange& range)
    : width_(b.shape.width), dtype_(params.dtype()), rope_(params.device(), b, params.dtype()) {
  if (range.has_embedding) embedding_.emplace(params, b);
  for (int64_t layer = range.first; layer < range.first + range.count; ++layer) {
    blocks_.emplace_back(params, b, layer, rope_);
  }
  if (range.has_head) {
    params.begin_bucket();
    final_norm_.emplace(params, "final_norm", b, width_, b.between_regions());
    head_.emplace(params, b);
  }
  find_needed();
}

void Stage::find_needed() {
  if (embedding_) needed_forward_ = embedding_->buckets();
  for (const Block& block : blocks_) needed_forward_.push_back(block.bucket());
  if (final_norm_) {
    needed_forward_.push_back(final_norm_->bucket());
    needed_backward_.push_back(final_norm_->bucket());
    needed_forward_.push_back(head_->bucket());
  }
  for (size_t i = blocks_.size(); i-- > 0;) needed_backward_.push_back(blocks_[i].bucket());
}

Stage::Saved Stage::make_saved() const {
  Saved saved;
  saved.blocks.resize(blocks_.size());
  return saved;
}

void Stage::forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor input,
                    Tensor output, Saved& s) {
  env.begin_pass(needed_forward_);
  const Shape shape = hidden(env, micro);
  ConstTensor x = input;
  if (embedding_) {
    const Tensor embedded = ex.keep.allocate(shape, dtype_, "stage.embedded");
    embedding_->forward(ex, env, micro, embedded);
    x = embedded;
  }
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const bool leaves = output.present() && i + 1 == blocks_.size();
    const Tensor y = leaves ? output : ex.keep.allocate(shape, dtype_, "stage.hidden");
    env.need(ex, blocks_[i].bucket());
    blocks_[i].forward(ex, env, micro, x, y, s.blocks[i]);
    x = y;
  }
  s.last = x;
  if (!head_) return;
  s.dhidden = env.training ? ex.keep.allocate(shape, dtype_, "stage.dhidden") : Tensor{};
  ArenaScope scope(ex.scratch);
  const Tensor normed = ex.scratch.allocate(shape, dtype_, "stage.final_norm");
  env.need(ex, final_norm_->bucket());
  final_norm_->forward(ex, x, normed, s.final_norm);
  head_->forward(ex, env, micro, normed, s.dhidden);
}

void Stage::backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor doutput,
                     Tensor dinput, const Saved& s) {
  env.begin_pass(needed_backward_);
  ArenaScope scope(ex.scratch);
  // Each block's input gradient replaces its output gradient, unless that is still needed.
  const bool replaces = env.postponed == nullptr;
  const Shape shape = hidden(env, micro);
  Tensor dx = dinput.present() ? dinput : ex.scratch.allocate(shape, dtype_, "stage.dx");
  const auto next_dx = [&](size_t block) {
    if (replaces || block == 0) return dx;
    return ex.keep.allocate(shape, dtype_, "stage.dx");
  };
  // A bucket is finished before the next is begun, where somebody waits for that.
  const auto sums_before = [&](size_t block) {
    return block > 0 && !env.passes_gradients() ? blocks_[block - 1].dy_sums(env) : Tensor{};
  };
  ConstTensor dy = doutput;
  bool dy_summed = false;
  if (head_) {
    const Tensor dx_sums = sums_before(blocks_.size());
    const Tensor out = next_dx(blocks_.size());
    env.need(ex, final_norm_->bucket());
    env.bucket_begins(ex, final_norm_->bucket());
    final_norm_->backward(ex, s.dhidden, s.last, s.final_norm, {}, out, dx_sums);
    dy = out;
    dy_summed = dx_sums.present();
    env.bucket_done(ex, final_norm_->bucket());
  }
  for (size_t i = blocks_.size(); i-- > 0;) {
    const Tensor dx_sums = sums_before(i);
    const Tensor out = next_dx(i);
    env.need(ex, blocks_[i].bucket());
    env.bucket_begins(ex, blocks_[i].bucket());
    blocks_[i].backward(ex, env, micro, {dy, dy_summed, out, dx_sums}, s.blocks[i]);
    dy = out;
    dy_summed = dx_sums.present();
    env.bucket_done(ex, blocks_[i].bucket());
  }
  if (embedding_) embedding_->backward(ex, env, micro, dx);
}

void Stage::infer(Exec& ex, ModelEnv& env, const MicroBatch& micro, const Outputs& outputs) {
  ArenaScope scope(ex.scratch);
  const Shape shape{micro.tokens_count(), width_};
  Tensor x = ex.scratch.allocate(shape, dtype_, "infer.x");
  Tensor y = ex.scratch.allocate(shape, dtype_, "infer.y");
  embedding_->forward(ex, env, micro, x);
  for (size_t i = 0; i <= blocks_.size(); ++i) {
    if (!outputs.hidden.empty()) ops::copy(ex, {.in = x, .out = outputs.hidden[i]});
    if (i == blocks_.size()) break;
    ArenaScope dropped(ex.keep);
    Block::Saved unused;
    blocks_[i].forward(ex, env, micro, x, y, unused);
    std::swap(x, y);
  }
  ArenaScope dropped(ex.keep);
  NormLayer::Saved unused;
  const Tensor normed = outputs.final_norm.present() ? outputs.final_norm : y;
  final_norm_->forward(ex, x, normed, unused);
  if (outputs.logits.present()) head_->logits(ex, normed, outputs.logits);
  if (!outputs.last_logits.present()) return;
  for (int64_t i = 0; i < micro.sequences; ++i)
    head_->logits(ex, slice(normed, 0, (i + 1) * micro.length - 1, 1),
                  slice(outputs.last_logits, 0, i, 1));
}

}  // namespace bev
