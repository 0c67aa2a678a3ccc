#include "model/stage.h"

#include <algorithm>

#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace bev {

Stage::Stage(ParamStore& params, const ModelSpec& b, const StageLayers& range)
    : width_(b.shape.width),
      dtype_(params.dtype()),
      distribute_(b.config.recompute.distribute),
      rope_(params.device(), b, params.dtype()),
      groups_(recompute_groups(b.config.recompute, static_cast<size_t>(range.count))) {
  if (range.has_embedding) embedding_.emplace(params, b);
  for (int64_t layer = range.first; layer < range.first + range.count; ++layer) {
    blocks_.emplace_back(params, b, layer, rope_);
  }
  if (range.has_head) {
    params.begin_bucket();
    final_norm_.emplace(params, "final_norm", b, width_, b.replica_between_regions());
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
  for (size_t g = groups_.size(); g-- > 0;) {
    for (size_t i = groups_[g].first; groups_[g].recomputed && i < groups_[g].end(); ++i)
      needed_backward_.push_back(blocks_[i].bucket());
    for (size_t i = groups_[g].end(); i-- > groups_[g].first;)
      needed_backward_.push_back(blocks_[i].bucket());
  }
}

Stage::Saved Stage::make_saved() const {
  Saved saved;
  saved.blocks.resize(blocks_.size());
  saved.inputs.resize(groups_.size());
  return saved;
}

void Stage::run(Exec& ex, ModelEnv& env, const MicroBatch& micro, const RecomputeGroup& group,
                ConstTensor x, Tensor y, Arena& between, Saved& s) const {
  const Shape shape = hidden(env, micro);
  for (size_t i = group.first; i < group.end(); ++i) {
    const bool is_last = i + 1 == group.end();
    const Tensor out = is_last ? y : between.allocate(shape, dtype_, "stage.hidden");
    env.gather(ex, blocks_[i].bucket());
    blocks_[i].forward(ex, env, micro, x, out, s.blocks[i]);
    x = out;
  }
}

void Stage::run_without_saving(Exec& ex, ModelEnv& env, const MicroBatch& micro,
                               const RecomputeGroup& group, ConstTensor x, Tensor y) const {
  // An arena of its own: the scratch arena is a stack that the modules unwind while these live.
  Exec passing = ex.with_keep(ex.recompute);
  for (size_t i = group.first; i < group.end(); ++i) {
    ArenaScope dropped(ex.recompute);
    Block::Saved unused;
    env.gather(ex, blocks_[i].bucket());
    blocks_[i].forward(passing, env, micro, x, y, unused);
    x = y;
  }
}

void Stage::recompute(Exec& ex, ModelEnv& env, const MicroBatch& micro, size_t group,
                      Saved& s) const {
  // What postponed weight gradients read has to outlive this; hidden states are not among it.
  Exec again = env.deferred_weight_grads != nullptr ? ex : ex.with_keep(ex.recompute);
  ConstTensor x = s.inputs[group];
  if (is_divided(env, group)) x = env.tensor.gather_shards(ex, x, hidden(env, micro), ex.recompute);
  run(again, env, micro, groups_[group], x, Tensor{}, ex.recompute, s);
}

void Stage::forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor input,
                    Tensor output, Saved& s) {
  env.begin_gathers(needed_forward_);
  const Shape shape = hidden(env, micro);
  ArenaScope scope(ex.scratch);
  // One tensor serves all groups of whose inputs only parts are kept: the next overwrites it.
  Tensor passing;
  const auto hidden_before = [&](size_t group, const char* name) {
    if (!is_divided(env, group)) return ex.keep.allocate(shape, dtype_, name);
    if (!passing.present()) passing = ex.scratch.allocate(shape, dtype_, "stage.passing");
    return passing;
  };
  ConstTensor x = input;
  if (embedding_) {
    const Tensor embedded = hidden_before(0, "stage.embedded");
    embedding_->forward(ex, env, micro, embedded);
    x = embedded;
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    const bool leaves = output.present() && g + 1 == groups_.size();
    const Tensor y = leaves ? output : hidden_before(g + 1, "stage.hidden");
    if (groups_[g].recomputed) {
      s.inputs[g] = is_divided(env, g) ? env.tensor.save_shard(ex, x) : x;
      run_without_saving(ex, env, micro, groups_[g], x, y);
    } else {
      run(ex, env, micro, groups_[g], x, y, ex.keep, s);
    }
    x = y;
  }
  s.last = x;
  if (!head_) return;
  s.dhidden = env.training ? ex.keep.allocate(shape, dtype_, "stage.dhidden") : Tensor{};
  const Tensor normed = ex.scratch.allocate(shape, dtype_, "stage.final_norm");
  env.gather(ex, final_norm_->bucket());
  final_norm_->forward(ex, x, normed, s.final_norm);
  head_->forward(ex, env, micro, normed, s.dhidden);
}

void Stage::backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor doutput,
                     Tensor dinput, Saved& s) {
  env.begin_gathers(needed_backward_);
  ArenaScope scope(ex.scratch);
  // Each block's input gradient replaces its output gradient, unless that is still needed.
  const bool replaces = env.deferred_weight_grads == nullptr;
  const Shape shape = hidden(env, micro);
  Tensor dx = dinput.present() ? dinput : ex.scratch.allocate(shape, dtype_, "stage.dx");
  const auto next_dx = [&](size_t block) {
    if (replaces || block == 0) return dx;
    return ex.keep.allocate(shape, dtype_, "stage.dx");
  };
  // A bucket is finished before the next is begun, where somebody waits for that.
  const auto sums_before = [&](size_t block) {
    return block > 0 && !env.streams_grad_buckets() ? blocks_[block - 1].dy_sums(env) : Tensor{};
  };
  ConstTensor dy = doutput;
  bool dy_summed = false;
  if (head_) {
    const Tensor dx_sums = sums_before(blocks_.size());
    const Tensor out = next_dx(blocks_.size());
    env.gather(ex, final_norm_->bucket());
    env.begin_bucket_grads(ex, final_norm_->bucket());
    final_norm_->backward(ex, s.dhidden, s.last, s.final_norm, {}, out, dx_sums);
    dy = out;
    dy_summed = dx_sums.present();
    env.end_bucket_grads(ex, final_norm_->bucket());
  }
  for (size_t g = groups_.size(); g-- > 0;) {
    ArenaScope recomputed(ex.recompute);
    if (groups_[g].recomputed) recompute(ex, env, micro, g, s);
    for (size_t i = groups_[g].end(); i-- > groups_[g].first;) {
      const Tensor dx_sums = sums_before(i);
      const Tensor out = next_dx(i);
      env.gather(ex, blocks_[i].bucket());
      env.begin_bucket_grads(ex, blocks_[i].bucket());
      blocks_[i].backward(ex, env, micro, {dy, dy_summed, out, dx_sums}, s.blocks[i]);
      dy = out;
      dy_summed = dx_sums.present();
      env.end_bucket_grads(ex, blocks_[i].bucket());
    }
  }
  if (embedding_) embedding_->backward(ex, env, micro, dx);
}

void Stage::infer(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor input,
                  Tensor output, const InferenceOutputs& outputs) {
  ArenaScope scope(ex.scratch);
  const Shape shape{micro.tokens_count(), width_};
  const Tensor own = output.present() ? output : ex.scratch.allocate(shape, dtype_, "infer.x");
  ConstTensor x = input;
  if (embedding_) {
    embedding_->forward(ex, env, micro, own);
    x = own;
  }
  for (size_t i = 0; i <= blocks_.size(); ++i) {
    if (!outputs.hidden.empty()) ops::copy(ex, {.in = x, .out = outputs.hidden[i]});
    if (i == blocks_.size()) break;
    ArenaScope dropped(ex.keep);
    Block::Saved unused;
    blocks_[i].forward(ex, env, micro, x, own, unused);
    x = own;
  }
  if (!head_) return;
  ArenaScope dropped(ex.keep);
  NormModule::Saved unused;
  const Tensor normed = outputs.final_norm.present()
                            ? outputs.final_norm
                            : ex.scratch.allocate(shape, dtype_, "infer.final_norm");
  final_norm_->forward(ex, x, normed, unused);
  if (outputs.losses) head_->forward(ex, env, micro, normed, {});
  if (!outputs.logits.present()) return;
  ConstTensor rows = normed;
  if (outputs.logit_rows.present()) {
    const Tensor chosen =
        ex.scratch.allocate({outputs.logits.rows(), width_}, dtype_, "infer.rows");
    ops::embedding(ex, {.table = normed, .ids = outputs.logit_rows, .out = chosen});
    rows = chosen;
  }
  head_->logits(ex, env, rows, outputs.logits);
}

namespace {

// They come first.
size_t recomputed_blocks(const RecomputeConfig& c, size_t blocks) {
  if (c.granularity != Recompute::Full) return 0;
  if (c.method == RecomputeMethod::Uniform || c.layers == 0) return blocks;
  return std::min(static_cast<size_t>(c.layers), blocks);
}

size_t group_size(const RecomputeConfig& c) {
  const bool in_groups = c.method == RecomputeMethod::Uniform && c.layers > 0;
  return in_groups ? static_cast<size_t>(c.layers) : 1;
}

}  // namespace

std::vector<RecomputeGroup> recompute_groups(const RecomputeConfig& recompute, size_t blocks) {
  const size_t recomputed = recomputed_blocks(recompute, blocks), size = group_size(recompute);
  std::vector<RecomputeGroup> groups;
  for (size_t first = 0; first < recomputed; first += size)
    groups.push_back({first, std::min(size, recomputed - first), true});
  if (recomputed < blocks) groups.push_back({recomputed, blocks - recomputed, false});
  return groups;
}

}  // namespace bev
