// Activation recomputation (Chen et al. 2016): a group of blocks keeps only the input of its first
// block, and runs forward again before the backward of its last.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "model/block.h"

namespace bev {

// Adjacent blocks on one hidden state.
struct RecomputeGroup {
  size_t first, count;
  bool recomputed;  // else all activations are kept

  size_t end() const { return first + count; }
};

// The groups of `blocks` adjacent blocks, in order.
std::vector<RecomputeGroup> recompute_groups(const RecomputeSpec& recompute, size_t blocks);

// The blocks of a stage in groups.
class BlockGroups {
 public:
  struct Saved {
    std::vector<Block::Saved> blocks;
    std::vector<ConstTensor> inputs;  // of recomputed groups; a shard if distributed
  };

  BlockGroups(const RecomputeSpec& recompute, DType dtype) : left_(recompute), dtype_(dtype) {}

  void add_block(ParamStore& params, const BlockSpec& spec, const RopeTable* rope) {
    blocks_.emplace_back(params, spec, rope);
  }
  // The blocks since the last call follow each other on one state: divides them into groups, whose
  // indices it returns.
  std::vector<size_t> end_run();

  const std::deque<Block>& blocks() const { return blocks_; }
  const RecomputeGroup& operator[](size_t group) const { return groups_[group]; }
  Saved make_saved() const;

  // Runs the blocks of a group forward. x, y [tokens, width]; y may alias x if the group is
  // recomputed.
  void forward(Exec& ex, ModelEnv& env, size_t group, const BlockInputs& in, ConstTensor x,
               Tensor y, Saved& s) const;
  // Before the backward of a recomputed group: makes what forward did not save. `shape`: of the
  // group's input.
  void recompute(Exec& ex, ModelEnv& env, size_t group, const BlockInputs& in, const Shape& shape,
                 Saved& s) const;

  // True if members of the region keep a shard of the group's input each.
  bool is_distributed(const ModelEnv& env, size_t group) const {
    return left_.distribute && env.borders.tensor.is_replicated() && groups_[group].recomputed;
  }

 private:
  // Runs all blocks of the group. The last one writes y; hidden states between them go to
  // `between`.
  void run(Exec& ex, ModelEnv& env, const RecomputeGroup& group, const BlockInputs& in,
           ConstTensor x, Tensor y, Arena& between, Saved& s) const;
  void run_without_saving(Exec& ex, ModelEnv& env, const RecomputeGroup& group,
                          const BlockInputs& in, ConstTensor x, Tensor y) const;

  RecomputeSpec left_;  // `blocks`: that later runs recompute
  DType dtype_;
  std::deque<Block> blocks_;
  std::vector<RecomputeGroup> groups_;
};

}  // namespace bev
