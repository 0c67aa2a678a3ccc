// A run of blocks, with the embedding in front when it is the first stage and the head behind when
// it is the last. Between stages travels the hidden state [tokens, width], of this rank's tokens.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "config/run_config.h"
#include "model/block.h"
#include "model/embedding.h"
#include "model/lm_head.h"

namespace bev {

// How recomputation divides the blocks of a stage.

// Blocks that follow each other. Those that are recomputed keep only what enters the first of them
// and run forward again, all of them, before the backward of the last.
struct RecomputeGroup {
  size_t first, count;
  bool recomputed;

  size_t end() const { return first + count; }
};

// All blocks of a stage with so many, in order.
std::vector<RecomputeGroup> recompute_groups(const RecomputeConfig& recompute, size_t blocks);

// Which blocks of the model a stage holds.
struct StageLayers {
  int64_t first = 0, count = 0;
  bool has_embedding = true, has_head = true;
};

class Stage {
 public:
  struct Saved {
    std::vector<Block::Saved> blocks;
    // What enters each group that is recomputed; only a part of it where it is divided.
    std::vector<ConstTensor> inputs;
    ConstTensor last;  // what leaves the last block
    NormModule::Saved final_norm;
    Tensor dhidden;  // with a head: the gradient of the final norm's output
  };

  Stage(ParamStore& params, const ModelSpec& b, const StageLayers& range);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // A Saved with room for all blocks, so that a step does not allocate.
  Saved make_saved() const;

  // input: what the stage before sent (absent for the first). output: for the stage behind (absent
  // for the last, which adds its loss to env.loss instead).
  void forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor input, Tensor output,
               Saved& s);
  // doutput: from the stage behind (absent for the last). dinput: for the stage before; may be what
  // was the input, unless backward_reads_input(). What blocks compute again goes into s.
  void backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor doutput,
                Tensor dinput, Saved& s);
  // Whether backward reads the input that forward was given.
  bool backward_reads_input(const ModelEnv& env) const { return !is_divided(env, 0); }

  // What is wanted of an inference; all but `hidden` only of the stage with the head.
  struct InferenceOutputs {
    // The residual stream before the first and after each block; empty, or blocks + 1 tensors
    // [tokens, width].
    std::span<const Tensor> hidden{};
    Tensor final_norm{};       // [tokens, width], may be absent
    ConstTensor logit_rows{};  // i32 [rows]: the tokens that logits are wanted of; absent: all
    Tensor logits{};           // [rows, classes held here], may be absent
    bool losses = false;       // added to env.loss, and to env.token_losses where present
  };
  // Forward without keeping anything. input, output: as those of forward(). REQUIRES: rows are not
  // divided between regions.
  void infer(Exec& ex, ModelEnv& env, const MicroBatch& micro, ConstTensor input, Tensor output,
             const InferenceOutputs& outputs);

 private:
  // Of the hidden state, as this rank holds it between regions.
  Shape hidden(const ModelEnv& env, const MicroBatch& micro) const {
    return {env.tensor.local_row_count(micro.tokens_count()), width_};
  }

  // Whether only a part of what enters the group is kept here, and the rest elsewhere.
  bool is_divided(const ModelEnv& env, size_t group) const {
    return distribute_ && env.tensor.is_replicated() && group < groups_.size() &&
           groups_[group].recomputed;
  }
  // All blocks of the group, of which the last writes y; what lies between them goes into
  // `between`.
  void run(Exec& ex, ModelEnv& env, const MicroBatch& micro, const RecomputeGroup& group,
           ConstTensor x, Tensor y, Arena& between, Saved& s) const;
  // The same, keeping nothing. y may be x itself.
  void run_without_saving(Exec& ex, ModelEnv& env, const MicroBatch& micro,
                          const RecomputeGroup& group, ConstTensor x, Tensor y) const;
  void recompute(Exec& ex, ModelEnv& env, const MicroBatch& micro, size_t group, Saved& s) const;
  void find_needed();

  int64_t width_;
  DType dtype_;
  bool distribute_;
  std::optional<Embedding> embedding_;
  RopeTable rope_;
  std::deque<Block> blocks_;
  std::vector<RecomputeGroup> groups_;
  std::optional<NormModule> final_norm_;
  std::optional<LmHead> head_;
  std::vector<int> needed_forward_, needed_backward_;  // buckets, in the order of their use
};

}  // namespace bev
