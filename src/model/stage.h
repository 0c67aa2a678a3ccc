// A run of the model's parts. Between stages travel the hidden states that a later stage still
// reads, of the local tokens.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "model/embedding.h"
#include "model/lm_head.h"
#include "model/pair_head.h"
#include "model/position_bias.h"
#include "model/recompute.h"

namespace bev {

// Parts [first, end) of ModelSpec::parts.
struct PartRange {
  size_t first = 0, end = 0;
};

// Hidden states that a part before `part` touches and that part or a later one, too: a stage that
// begins with it receives them.
std::vector<int> live_hidden(const ModelSpec& spec, size_t part);

// Hidden states by their index in ModelSpec::hidden; absent ones have no tensor.
using HiddenStates = std::span<const Tensor>;

class Stage {
 public:
  struct Saved {
    std::vector<Embedding::Saved> embeddings;
    BlockGroups::Saved blocks;
    std::vector<ConstTensor> contexts;  // of cross attention, by step
    std::vector<Tensor> biases;         // by relative position
    std::vector<ConstTensor> norm_inputs;
    std::vector<NormModule::Saved> norms;
    // Gradients of the heads' inputs and contexts, made by forward.
    std::vector<Tensor> head_grads, head_context_grads;
  };

  Stage(ParamStore& params, const ModelSpec& spec, PartRange parts);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  PartRange parts() const { return parts_; }
  const std::deque<Embedding>& embeddings() const { return embeddings_; }
  const std::deque<Block>& blocks() const { return blocks_.blocks(); }
  const std::deque<PositionBias>& biases() const { return biases_; }
  const std::deque<NormModule>& norms() const { return norms_; }
  const std::deque<LmHead>& heads() const { return heads_; }
  const std::deque<MaskedLmHead>& masked_heads() const { return masked_heads_; }
  const std::deque<Classifier>& classifiers() const { return classifiers_; }
  const std::deque<PairHead>& pair_heads() const { return pair_heads_; }

  // With room for all parts, so that a step does not allocate.
  Saved make_saved() const;

  // Hidden states that enter and leave the stage.
  const std::vector<int>& inputs() const { return inputs_; }
  const std::vector<int>& outputs() const { return outputs_; }
  // True if the stage computes losses.
  bool has_heads() const { return head_count_ > 0; }
  // True if the state enters and leaves the stage and no part replaces it.
  bool sends_input_on(int hidden) const;
  // True if no part reads it, either.
  bool passes_through(int hidden) const;
  Shape hidden_shape(const ModelEnv& env, const MicroBatch& micro, int hidden) const {
    return {env.borders.tensor.local_row_count(text_of(micro, hidden).tokens_count()),
            hidden_[static_cast<size_t>(hidden)].width};
  }
  // Buckets of which backward writes gradients, one entry per part.
  std::vector<int> grad_buckets() const;

  // Heads add their losses to env.losses.
  void forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, HiddenStates input,
               HiddenStates output, Saved& s) const;
  // dinput[i] may alias input[i] unless backward_reads_input(). Recomputed blocks write into s.
  void backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, HiddenStates doutput,
                HiddenStates dinput, Saved& s) const;
  // True if backward reads the input that forward was given.
  bool backward_reads_input(const ModelEnv& env, int hidden) const;

 private:
  enum class Kind : uint8_t {
    Embedding,
    Blocks,
    Norm,
    Add,
    Head,
    MaskedHead,
    Classifier,
    PairHead
  };
  static bool is_head(Kind kind) { return kind >= Kind::Head; }
  // One part, or a group of blocks.
  struct Step {
    Kind kind;
    int hidden;
    size_t index;     // into the modules of its kind
    size_t head = 0;  // of a head: index into Saved::head_grads and head_context_grads
    std::optional<int> context{};
    std::optional<size_t> bias{};  // of blocks: index into biases_
    // The module that wrote the state before it, in this stage.
    bool is_first = false;                 // there is none, or it is the embedding
    std::optional<size_t> block_before{};  // it is this block, and no other part reads the state

    bool reads(int state) const { return context == state || (is_head(kind) && hidden == state); }
    bool writes(int state) const { return hidden == state && !is_head(kind); }
  };
  class BackwardPass;

  void add(ParamStore& params, const PartSpec& part);
  void add_block(ParamStore& params, const BlockSpec& spec);
  std::optional<size_t> find_bias(ParamStore& params, const AttentionSpec& spec);
  void run_head(Exec& ex, ModelEnv& env, const MicroBatch& micro, const Step& step, ConstTensor x,
                ConstTensor context, Saved& s) const;
  void link_steps();
  void order_buckets();

  const TextView& text_of(const MicroBatch& micro, int hidden) const {
    return micro[hidden_[static_cast<size_t>(hidden)].text];
  }
  BlockInputs block_inputs(const MicroBatch& micro, size_t step, const Saved& s) const;
  // True if no step before it has the same bias.
  bool is_first_with_bias(size_t step) const;
  const Step* next_on(size_t step) const;
  bool is_context_after(size_t step) const;
  bool is_distributed(const ModelEnv& env, const Step& step) const {
    return step.kind == Kind::Blocks && blocks_.is_distributed(env, step.index);
  }

  PartRange parts_;
  DType dtype_;
  std::vector<HiddenSpec> hidden_;
  std::vector<int> inputs_, outputs_;
  std::deque<RopeTable> ropes_;
  std::deque<PositionBias> biases_;
  std::deque<Embedding> embeddings_;
  BlockGroups blocks_;
  std::deque<NormModule> norms_;
  std::deque<LmHead> heads_;
  std::deque<MaskedLmHead> masked_heads_;
  std::deque<Classifier> classifiers_;
  std::deque<PairHead> pair_heads_;
  size_t head_count_ = 0;
  std::vector<Step> steps_;
  std::vector<int> forward_order_, backward_order_;  // buckets, in the order of their use
};

}  // namespace bev
