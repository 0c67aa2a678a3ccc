#include "model/stage.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "ops/elementwise.h"

namespace bev {

namespace {

constexpr size_t kMostHidden = 4;

bool contains(const std::vector<int>& states, int state) {
  return std::find(states.begin(), states.end(), state) != states.end();
}

}  // namespace

std::vector<int> live_hidden(const ModelSpec& spec, size_t part) {
  std::vector<int> live;
  for (int state = 0; state < static_cast<int>(spec.hidden.size()); ++state) {
    const auto touches = [&](const PartSpec& p) { return p.touches(state); };
    const auto middle = spec.parts.begin() + static_cast<ptrdiff_t>(part);
    if (std::any_of(spec.parts.begin(), middle, touches) &&
        std::any_of(middle, spec.parts.end(), touches))
      live.push_back(state);
  }
  return live;
}

Stage::Stage(ParamStore& params, const ModelSpec& spec, PartRange parts)
    : parts_(parts),
      dtype_(params.dtype()),
      hidden_(spec.hidden),
      inputs_(live_hidden(spec, parts.first)),
      outputs_(live_hidden(spec, parts.end)),
      blocks_(spec.recompute, params.dtype()) {
  // Every hidden state has one bias at most.
  BEV_CHECK(hidden_.size() <= kMostHidden, Internal, "{} hidden states", hidden_.size());
  for (size_t i = parts.first; i < parts.end; ++i) {
    const PartSpec& part = spec.parts[i];
    const auto* block = std::get_if<BlockSpec>(&part.is);
    // The bucket of the table is used before those of the blocks.
    const auto bias = block != nullptr ? find_bias(params, block->attention) : std::nullopt;
    add(params, part);
    const auto continues = [&](const PartSpec& next) {
      return std::holds_alternative<BlockSpec>(next.is) && next.hidden == part.hidden &&
             next.context == part.context;
    };
    if (block == nullptr) continue;
    if (i + 1 < parts.end && continues(spec.parts[i + 1])) continue;
    for (const size_t group : blocks_.end_run())
      steps_.push_back({.kind = Kind::Blocks,
                        .hidden = part.hidden,
                        .index = group,
                        .context = part.context,
                        .bias = bias});
  }
  link_steps();
  order_buckets();
}

void Stage::add(ParamStore& params, const PartSpec& part) {
  const auto* block = std::get_if<BlockSpec>(&part.is);
  const auto* pairs = std::get_if<PairHeadSpec>(&part.is);
  const bool reads_context = std::holds_alternative<AddSpec>(part.is) ||
                             (block != nullptr && block->cross) ||
                             (pairs != nullptr && pairs->towers.size() > 1);
  BEV_CHECK(part.context.has_value() == reads_context, Internal,
            "sums, cross attention and heads of two towers read a context, other parts do not");
  if (const auto* embedding = std::get_if<EmbeddingSpec>(&part.is)) {
    steps_.push_back({Kind::Embedding, part.hidden, embeddings_.size()});
    embeddings_.emplace_back(params, *embedding);
  } else if (block != nullptr) {
    add_block(params, *block);
  } else if (const auto* norm = std::get_if<FinalNormSpec>(&part.is)) {
    params.begin_bucket();
    steps_.push_back({Kind::Norm, part.hidden, norms_.size()});
    norms_.emplace_back(params, norm->name, norm->width, norm->norm);
  } else if (std::holds_alternative<AddSpec>(part.is)) {
    steps_.push_back(
        {.kind = Kind::Add, .hidden = part.hidden, .index = 0, .context = part.context});
  } else if (const auto* head = std::get_if<LmHeadSpec>(&part.is)) {
    steps_.push_back({Kind::Head, part.hidden, heads_.size(), head_count_++});
    heads_.emplace_back(params, *head);
  } else if (const auto* masked = std::get_if<MaskedLmHeadSpec>(&part.is)) {
    steps_.push_back({Kind::MaskedHead, part.hidden, masked_heads_.size(), head_count_++});
    masked_heads_.emplace_back(params, *masked);
  } else if (pairs != nullptr) {
    steps_.push_back(
        {Kind::PairHead, part.hidden, pair_heads_.size(), head_count_++, part.context});
    pair_heads_.emplace_back(params, *pairs);
  } else {
    steps_.push_back({Kind::Classifier, part.hidden, classifiers_.size(), head_count_++});
    classifiers_.emplace_back(params, std::get<ClassifierSpec>(part.is));
  }
}

void Stage::run_head(Exec& ex, ModelEnv& env, const MicroBatch& micro, const Step& step,
                     ConstTensor x, ConstTensor context, Saved& s) const {
  const TextView& text = text_of(micro, step.hidden);
  const auto gradient = [&](const ConstTensor& of) {
    return env.pass.training ? ex.keep.allocate(of.shape, dtype_, "stage.dhidden") : Tensor{};
  };
  const Tensor dx = s.head_grads[step.head] = gradient(x);
  if (step.context) s.head_context_grads[step.head] = gradient(context);
  switch (step.kind) {
    case Kind::PairHead: {
      const PairHead& head = pair_heads_[step.index];
      const PairHead::Tower first{text, x, dx};
      if (!step.context) return head.forward(ex, env, std::array{first});
      const PairHead::Tower second{text_of(micro, *step.context), context,
                                   s.head_context_grads[step.head]};
      return head.forward(ex, env, std::array{first, second});
    }
    case Kind::Head: return heads_[step.index].forward(ex, env, text, x, dx);
    case Kind::MaskedHead: return masked_heads_[step.index].forward(ex, env, text, x, dx);
    default: return classifiers_[step.index].forward(ex, env, text, x, dx);
  }
}

void Stage::add_block(ParamStore& params, const BlockSpec& spec) {
  const RopeTable* rope = nullptr;
  if (spec.attention.rope) {
    const auto same = [&](const RopeTable& table) { return table.spec() == *spec.attention.rope; };
    const auto known = std::find_if(ropes_.begin(), ropes_.end(), same);
    rope = known != ropes_.end()
               ? &*known
               : &ropes_.emplace_back(params.device(), *spec.attention.rope, params.dtype());
  }
  blocks_.add_block(params, spec, rope);
}

std::optional<size_t> Stage::find_bias(ParamStore& params, const AttentionSpec& spec) {
  if (!spec.relative) return {};
  const auto known = std::find_if(biases_.begin(), biases_.end(), [&](const PositionBias& bias) {
    return bias.name() == spec.relative->table.name;
  });
  const auto index = static_cast<size_t>(known - biases_.begin());
  if (known == biases_.end()) biases_.emplace_back(params, *spec.relative);
  return index;
}

BlockInputs Stage::block_inputs(const MicroBatch& micro, size_t index, const Saved& s) const {
  const Step& step = steps_[index];
  BlockInputs in{.text = text_of(micro, step.hidden)};
  if (step.bias) in.bias.values = s.biases[*step.bias];
  if (step.context) in.context.emplace(text_of(micro, *step.context), s.contexts[index]);
  return in;
}

bool Stage::is_first_with_bias(size_t step) const {
  const auto begin = steps_.begin(), end = begin + static_cast<ptrdiff_t>(step);
  return steps_[step].bias && std::none_of(begin, end, [&](const Step& before) {
           return before.bias == steps_[step].bias;
         });
}

void Stage::link_steps() {
  for (size_t i = 0; i < steps_.size(); ++i) {
    const int state = steps_[i].hidden;
    steps_[i].is_first = true;
    bool is_read = false;
    for (size_t j = i; j-- > 0;) {
      const Step& before = steps_[j];
      is_read = is_read || before.reads(state);
      if (!before.writes(state)) continue;
      steps_[i].is_first = before.kind == Kind::Embedding;
      if (before.kind == Kind::Blocks && !is_read)
        steps_[i].block_before = blocks_[before.index].end() - 1;
      break;
    }
  }
}

void Stage::order_buckets() {
  const auto blocks_of = [&](const Step& step, bool reversed, std::vector<int>& order) {
    const RecomputeGroup& group = blocks_[step.index];
    for (size_t i = 0; i < group.count; ++i)
      order.push_back(blocks()[reversed ? group.end() - 1 - i : group.first + i].bucket());
  };
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    if (is_first_with_bias(i)) forward_order_.push_back(biases_[*step.bias].bucket());
    switch (step.kind) {
      case Kind::Embedding:
        for (const int bucket : embeddings_[step.index].buckets()) forward_order_.push_back(bucket);
        break;
      case Kind::Blocks: blocks_of(step, false, forward_order_); break;
      case Kind::Norm: forward_order_.push_back(norms_[step.index].bucket()); break;
      case Kind::Add: break;
      case Kind::Head:
        for (const int bucket : heads_[step.index].gather_order()) forward_order_.push_back(bucket);
        break;
      case Kind::MaskedHead:
        for (const int bucket : masked_heads_[step.index].gather_order())
          forward_order_.push_back(bucket);
        break;
      case Kind::Classifier: forward_order_.push_back(classifiers_[step.index].bucket()); break;
      case Kind::PairHead:
        if (const auto bucket = pair_heads_[step.index].bucket()) forward_order_.push_back(*bucket);
        break;
    }
  }
  for (size_t i = steps_.size(); i-- > 0;) {
    const Step& step = steps_[i];
    if (step.kind == Kind::Norm) backward_order_.push_back(norms_[step.index].bucket());
    if (step.kind == Kind::Embedding)
      if (const auto bucket = embeddings_[step.index].norm_bucket())
        backward_order_.push_back(*bucket);
    if (step.kind != Kind::Blocks) continue;
    if (blocks_[step.index].recomputed) blocks_of(step, false, backward_order_);
    blocks_of(step, true, backward_order_);
  }
}

std::vector<int> Stage::grad_buckets() const {
  std::vector<int> buckets;
  for (const Embedding& embedding : embeddings_)
    for (const int bucket : embedding.buckets()) buckets.push_back(bucket);
  for (const Block& block : blocks()) buckets.push_back(block.bucket());
  for (const NormModule& norm : norms_) buckets.push_back(norm.bucket());
  for (const PositionBias& bias : biases_) buckets.push_back(bias.bucket());
  for (const LmHead& head : heads_)
    for (const int bucket : head.grad_buckets()) buckets.push_back(bucket);
  for (const MaskedLmHead& head : masked_heads_)
    for (const int bucket : head.grad_buckets()) buckets.push_back(bucket);
  for (const Classifier& classifier : classifiers_) buckets.push_back(classifier.bucket());
  for (const PairHead& head : pair_heads_)
    if (head.bucket()) buckets.push_back(*head.bucket());
  return buckets;
}

Stage::Saved Stage::make_saved() const {
  Saved saved;
  saved.embeddings.resize(embeddings_.size());
  saved.blocks = blocks_.make_saved();
  saved.contexts.resize(steps_.size());
  saved.biases.resize(biases_.size());
  saved.norm_inputs.resize(norms_.size());
  saved.norms.resize(norms_.size());
  saved.head_grads.resize(head_count_);
  saved.head_context_grads.resize(head_count_);
  return saved;
}

bool Stage::sends_input_on(int hidden) const {
  return contains(inputs_, hidden) && contains(outputs_, hidden) &&
         std::none_of(steps_.begin(), steps_.end(),
                      [&](const Step& step) { return step.writes(hidden); });
}

bool Stage::passes_through(int hidden) const {
  return sends_input_on(hidden) &&
         std::none_of(steps_.begin(), steps_.end(),
                      [&](const Step& step) { return step.reads(hidden); });
}

// The step that reads the result of this one as its hidden state; null: none in this stage.
const Stage::Step* Stage::next_on(size_t step) const {
  for (size_t i = step + 1; i < steps_.size(); ++i)
    if (steps_[i].hidden == steps_[step].hidden) return &steps_[i];
  return nullptr;
}

bool Stage::is_context_after(size_t step) const {
  return std::any_of(steps_.begin() + static_cast<ptrdiff_t>(step), steps_.end(),
                     [&](const Step& later) { return later.context == steps_[step].hidden; });
}

bool Stage::backward_reads_input(const ModelEnv& env, int hidden) const {
  for (const Step& step : steps_) {
    if (step.context == hidden && !is_head(step.kind)) return true;
    if (step.writes(hidden)) return !is_distributed(env, step);
  }
  return false;
}

void Stage::forward(Exec& ex, ModelEnv& env, const MicroBatch& micro, HiddenStates input,
                    HiddenStates output, Saved& s) const {
  env.begin_gathers(forward_order_);
  ArenaScope scope(ex.scratch);
  std::array<ConstTensor, kMostHidden> hidden{};
  for (const int i : inputs_) hidden[static_cast<size_t>(i)] = input[static_cast<size_t>(i)];
  // By state: the input of a group of which only shards are kept. The next such group on the state
  // overwrites it.
  std::array<Tensor, kMostHidden> passing{};
  const auto result_of = [&](size_t i) {
    const Step& step = steps_[i];
    const auto state = static_cast<size_t>(step.hidden);
    const auto later = steps_.begin() + static_cast<ptrdiff_t>(i) + 1;
    const bool is_replaced = std::any_of(
        later, steps_.end(), [&](const Step& next) { return next.writes(step.hidden); });
    if (contains(outputs_, step.hidden) && !is_replaced) return output[state];
    const Step* reader = is_context_after(i) ? nullptr : next_on(i);
    const Shape shape = hidden_shape(env, micro, step.hidden);
    if (reader != nullptr && is_distributed(env, *reader)) {
      if (!passing[state].present())
        passing[state] = ex.scratch.allocate(shape, dtype_, "stage.passing");
      return passing[state];
    }
    // The backward of a head does not read its input; that of another part does.
    if (step.kind == Kind::Norm && !is_replaced && reader != nullptr && is_head(reader->kind))
      return ex.scratch.allocate(shape, dtype_, "stage.final_norm");
    return ex.keep.allocate(shape, dtype_,
                            step.kind == Kind::Embedding ? "stage.embedded" : "stage.hidden");
  };
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    ConstTensor& x = hidden[static_cast<size_t>(step.hidden)];
    if (is_head(step.kind)) {
      const ConstTensor context =
          step.context ? hidden[static_cast<size_t>(*step.context)] : ConstTensor{};
      run_head(ex, env, micro, step, x, context, s);
      continue;
    }
    const Tensor y = result_of(i);
    if (step.kind == Kind::Embedding) {
      embeddings_[step.index].forward(ex, env, text_of(micro, step.hidden), y,
                                      s.embeddings[step.index]);
    } else if (step.kind == Kind::Norm) {
      const NormModule& norm = norms_[step.index];
      s.norm_inputs[step.index] = x;
      env.gather(ex, norm.bucket());
      norm.forward(ex, x, y, s.norms[step.index]);
    } else if (step.kind == Kind::Add) {
      const ConstTensor context = hidden[static_cast<size_t>(*step.context)];
      ops::residual_add(ex, {.residual = x, .delta = context, .out = y});
    } else {
      if (step.context) s.contexts[i] = hidden[static_cast<size_t>(*step.context)];
      if (is_first_with_bias(i))
        s.biases[*step.bias] =
            biases_[*step.bias].forward(ex, env, text_of(micro, step.hidden).length);
      blocks_.forward(ex, env, step.index, block_inputs(micro, i, s), x, y, s.blocks);
    }
    x = y;
  }
}

// Gradients of the hidden states during one backward pass.
class Stage::BackwardPass {
 public:
  BackwardPass(const Stage& stage, Exec& ex, ModelEnv& env, const MicroBatch& micro,
               HiddenStates doutput, HiddenStates dinput)
      : stage_(stage), ex_(ex), env_(env), micro_(micro) {
    for (const int state : stage.outputs_)
      dy_[static_cast<size_t>(state)] = {doutput[static_cast<size_t>(state)]};
    for (const Step& step : stage.steps_) {
      make_dx(step.hidden, dinput);
      if (step.context) make_dx(*step.context, dinput);
      if (step.bias && !dbiases_[*step.bias].present())
        dbiases_[*step.bias] = stage_.biases_[*step.bias].begin_backward(
            ex_, stage_.text_of(micro_, step.hidden).length);
    }
  }

  void head(const Step& step, const Saved& s) {
    add_head(step.hidden, s.head_grads[step.head]);
    if (step.context) add_head(*step.context, s.head_context_grads[step.head]);
  }

  void add(const Step& step) { add_to(*step.context, dy_of(step).values); }

  void norm(const Step& step, const Saved& s) {
    const NormModule& norm = stage_.norms_[step.index];
    const GradientTarget dx = target(step.hidden, step.is_first, step.block_before);
    env_.gather(ex_, norm.bucket());
    env_.flow.begin_bucket(ex_, norm.bucket());
    norm.backward(ex_, dy_of(step).values, s.norm_inputs[step.index], s.norms[step.index], {}, dx);
    env_.flow.end_bucket(ex_, norm.bucket());
    set_dy(step.hidden, {dx.values, dx.sums.present()});
  }

  void blocks(size_t index, Saved& s) {
    const Step& step = stage_.steps_[index];
    const RecomputeGroup& group = stage_.blocks_[step.index];
    BlockInputs in = stage_.block_inputs(micro_, index, s);
    if (step.bias) in.bias.gradient = dbiases_[*step.bias];
    ArenaScope recomputed(ex_.recompute), scope(ex_.scratch);
    if (group.recomputed)
      stage_.blocks_.recompute(ex_, env_, step.index, in,
                               stage_.hidden_shape(env_, micro_, step.hidden), s.blocks);
    Tensor dcontext;
    if (step.context)
      dcontext = ex_.scratch.allocate(stage_.hidden_shape(env_, micro_, *step.context),
                                      stage_.dtype_, "stage.dcontext");
    for (size_t i = group.end(); i-- > group.first;) {
      const Block& block = stage_.blocks()[i];
      const bool is_first = i == group.first;
      const GradientTarget dx = target(step.hidden, is_first && step.is_first,
                                       is_first ? step.block_before : std::optional(i - 1));
      env_.gather(ex_, block.bucket());
      env_.flow.begin_bucket(ex_, block.bucket());
      block.backward(ex_, env_, in, dy_of(step), dx, dcontext, s.blocks.blocks[i]);
      env_.flow.end_bucket(ex_, block.bucket());
      set_dy(step.hidden, {dx.values, dx.sums.present()});
      if (step.context) add_to(*step.context, dcontext);
    }
    if (stage_.is_first_with_bias(index))
      stage_.biases_[*step.bias].backward(ex_, env_, dbiases_[*step.bias]);
  }

  void embedding(const Step& step, const Saved& s) {
    copy_to_dx(step.hidden);
    stage_.embeddings_[step.index].backward(ex_, env_, stage_.text_of(micro_, step.hidden),
                                            dx_[static_cast<size_t>(step.hidden)],
                                            s.embeddings[step.index]);
  }

  // The gradients of the stage's inputs.
  void finish() {
    for (const int state : stage_.inputs_)
      if (!stage_.passes_through(state)) copy_to_dx(state);
  }

 private:
  Gradient& dy_of(const Step& step) { return dy_[static_cast<size_t>(step.hidden)]; }
  void set_dy(int hidden, Gradient dy) {
    dy_[static_cast<size_t>(hidden)] = dy;
    sums_[static_cast<size_t>(hidden)] = {};
  }

  // The gradient of a state that a head has read.
  void add_head(int hidden, Tensor from_head) {
    const ConstTensor& dy = dy_[static_cast<size_t>(hidden)].values;
    if (dy.present())
      ops::residual_add(ex_, {.residual = dy, .delta = from_head, .out = from_head});
    set_dy(hidden, {from_head});
    in_dx_[static_cast<size_t>(hidden)] = false;
  }

  // Where a module writes the gradient of its input. It replaces the gradient of its output, unless
  // deferred weight gradients still read that.
  GradientTarget target(int hidden, bool is_first, std::optional<size_t> block_before) {
    const Tensor& dx = dx_[static_cast<size_t>(hidden)];
    const bool replaces = is_first || !env_.flow.defers();
    in_dx_[static_cast<size_t>(hidden)] = replaces;
    // A bucket must be reduced before the next one starts if they share memory.
    const bool sums = block_before && !env_.flow.streams_buckets();
    return {replaces ? dx : ex_.keep.allocate(dx.shape, stage_.dtype_, "stage.dx"),
            sums ? stage_.blocks()[*block_before].output_bias_grad(env_) : Tensor{}};
  }

  void make_dx(int hidden, HiddenStates dinput) {
    const auto state = static_cast<size_t>(hidden);
    if (dx_[state].present()) return;
    dx_[state] = contains(stage_.inputs_, hidden)
                     ? dinput[state]
                     : ex_.scratch.allocate(stage_.hidden_shape(env_, micro_, hidden),
                                            stage_.dtype_, "stage.dx");
  }

  // Adds to the gradient of a state that a part has read besides its own. Deferred weight gradients
  // of the parts before it read the sum.
  void add_to(int hidden, ConstTensor term) {
    const auto state = static_cast<size_t>(hidden);
    Gradient& dy = dy_[state];
    const Tensor& dx = dx_[state];
    Tensor& sum = sums_[state];
    if (!env_.flow.defers()) {
      sum = dx;
    } else if (!sum.present()) {
      sum = ex_.keep.allocate(dx.shape, stage_.dtype_, "stage.dcontext");
    }
    if (dy.values.present()) {
      ops::residual_add(ex_, {.residual = dy.values, .delta = term, .out = sum});
    } else {
      ops::copy(ex_, {.in = term, .out = sum});
    }
    dy = {sum};
    in_dx_[state] = !env_.flow.defers();
  }

  // The gradient may come from a head, a context or another stage instead of a module that wrote it
  // there.
  void copy_to_dx(int hidden) {
    const auto state = static_cast<size_t>(hidden);
    if (!in_dx_[state]) ops::copy(ex_, {.in = dy_[state].values, .out = dx_[state]});
    in_dx_[state] = true;
    dy_[state].values = dx_[state];
  }

  const Stage& stage_;
  Exec& ex_;
  ModelEnv& env_;
  const MicroBatch& micro_;
  std::array<Gradient, kMostHidden> dy_{};     // of the state at the current part
  std::array<Tensor, kMostHidden> dx_{};       // memory for the gradient of the stage's input
  std::array<bool, kMostHidden> in_dx_{};      // dy_ is in dx_
  std::array<Tensor, kMostHidden> dbiases_{};  // by relative position
  // Gradients that readers of the state have added; absent before the first of them.
  std::array<Tensor, kMostHidden> sums_{};
};

void Stage::backward(Exec& ex, ModelEnv& env, const MicroBatch& micro, HiddenStates doutput,
                     HiddenStates dinput, Saved& s) const {
  env.begin_gathers(backward_order_);
  ArenaScope scope(ex.scratch);
  BackwardPass pass(*this, ex, env, micro, doutput, dinput);
  for (size_t i = steps_.size(); i-- > 0;) {
    switch (steps_[i].kind) {
      case Kind::Embedding: pass.embedding(steps_[i], s); break;
      case Kind::Blocks: pass.blocks(i, s); break;
      case Kind::Norm: pass.norm(steps_[i], s); break;
      case Kind::Add: pass.add(steps_[i]); break;
      case Kind::Head:
      case Kind::MaskedHead:
      case Kind::Classifier:
      case Kind::PairHead: pass.head(steps_[i], s); break;
    }
  }
  pass.finish();
}

}  // namespace bev
