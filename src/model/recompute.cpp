#include "model/recompute.h"

#include <algorithm>

namespace bev {

std::vector<RecomputeGroup> recompute_groups(const RecomputeSpec& recompute, size_t blocks) {
  const size_t recomputed =
      recompute.blocks < 0 ? blocks : std::min(static_cast<size_t>(recompute.blocks), blocks);
  const auto size = static_cast<size_t>(recompute.group);
  std::vector<RecomputeGroup> groups;
  for (size_t first = 0; first < recomputed; first += size)
    groups.push_back({first, std::min(size, recomputed - first), true});
  if (recomputed < blocks) groups.push_back({recomputed, blocks - recomputed, false});
  return groups;
}

std::vector<size_t> BlockGroups::end_run() {
  const size_t first = groups_.empty() ? 0 : groups_.back().end();
  const size_t count = blocks_.size() - first;
  std::vector<size_t> indices;
  for (const RecomputeGroup& group : recompute_groups(left_, count)) {
    indices.push_back(groups_.size());
    groups_.push_back({first + group.first, group.count, group.recomputed});
  }
  if (left_.blocks > 0)
    left_.blocks = std::max<int64_t>(0, left_.blocks - static_cast<int64_t>(count));
  return indices;
}

BlockGroups::Saved BlockGroups::make_saved() const {
  return {std::vector<Block::Saved>(blocks_.size()), std::vector<ConstTensor>(groups_.size())};
}

void BlockGroups::forward(Exec& ex, ModelEnv& env, size_t group, const BlockInputs& in,
                          ConstTensor x, Tensor y, Saved& s) const {
  if (!groups_[group].recomputed) return run(ex, env, groups_[group], in, x, y, ex.keep, s);
  s.inputs[group] = is_distributed(env, group) ? env.borders.tensor.save_shard(ex, x) : x;
  run_without_saving(ex, env, groups_[group], in, x, y);
}

void BlockGroups::run(Exec& ex, ModelEnv& env, const RecomputeGroup& group, const BlockInputs& in,
                      ConstTensor x, Tensor y, Arena& between, Saved& s) const {
  for (size_t i = group.first; i < group.end(); ++i) {
    const bool is_last = i + 1 == group.end();
    const Tensor out = is_last ? y : between.allocate(x.shape, dtype_, "stage.hidden");
    env.gather(ex, blocks_[i].bucket());
    blocks_[i].forward(ex, env, in, x, out, s.blocks[i]);
    x = out;
  }
}

void BlockGroups::run_without_saving(Exec& ex, ModelEnv& env, const RecomputeGroup& group,
                                     const BlockInputs& in, ConstTensor x, Tensor y) const {
  // A separate arena: the scratch arena is a stack that modules unwind while these tensors live.
  Exec passing = ex.with_keep(ex.recompute);
  for (size_t i = group.first; i < group.end(); ++i) {
    ArenaScope dropped(ex.recompute);
    Block::Saved unused;
    env.gather(ex, blocks_[i].bucket());
    blocks_[i].forward(passing, env, in, x, y, unused);
    x = y;
  }
}

void BlockGroups::recompute(Exec& ex, ModelEnv& env, size_t group, const BlockInputs& in,
                            const Shape& shape, Saved& s) const {
  // Operands of deferred weight gradients must outlive this. With norms before attention and MLP
  // hidden states are not among them.
  Exec again = env.flow.defers() ? ex : ex.with_keep(ex.recompute);
  const bool keeps_hidden = env.flow.defers() && !blocks_[groups_[group].first].has_pre_norm();
  ConstTensor x = s.inputs[group];
  if (is_distributed(env, group)) x = env.borders.tensor.gather_shards(ex, x, shape, ex.recompute);
  run(again, env, groups_[group], in, x, Tensor{}, keeps_hidden ? ex.keep : ex.recompute, s);
}

}  // namespace bev
