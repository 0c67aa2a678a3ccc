#include "pipeline/executor.h"

#include "base/check.h"
#include "ops/elementwise.h"

namespace bev {

namespace {

template <class T>
ConstTensor upload(Device& device, Arena& arena, const std::vector<T>& host, const char* name) {
  if (host.empty()) return {};
  const Tensor t = arena.allocate({static_cast<int64_t>(host.size())}, DTypeOf<T>::value, name);
  device.upload(host.data(), t.data, host.size() * sizeof(T));
  return t;
}

Program verified(std::vector<Program> programs, const PipelineShape& shape, bool backward) {
  verify(programs.front(), shape, backward);
  return std::move(programs.front());
}

}  // namespace

Executor::Executor(Device& device, Stage& stage, ModelEnv& env, int64_t micros,
                   const ArenaSizes& sizes)
    : device_(device),
      stage_(stage),
      env_(env),
      scratch_(device, sizes.scratch, "scratch"),
      recompute_(device, sizes.recompute, "recomputation"),
      loss_(device, 2 * sizeof(double), "scalars") {
  make_programs(static_cast<size_t>(micros));
  const int slots = slots_of(train_program_);
  slots_.reserve(static_cast<size_t>(slots));
  for (int i = 0; i < slots; ++i) {
    slots_.push_back({Arena(device, sizes.keep, "activations"), stage.make_saved(), {}});
  }
  env_.loss = tensor_over(loss_.data(), DType::f64, {2});
}

void Executor::make_programs(size_t micros) {
  const PipelineShape shape{.micros = static_cast<int64_t>(micros)};
  train_program_ = verified(one_f_one_b(shape), shape, true);
  evaluate_program_ = verified(forward_only(shape), shape, false);
  micros_ = micros;
}

Exec Executor::exec_in(Slot& slot) {
  return {device_, device_.compute_stream(), slot.keep, scratch_, recompute_, cost_};
}

Exec Executor::exec() { return exec_in(slots_.front()); }

void Executor::load(const HostBatch& batch, Slot& slot) {
  slot.keep.release(0);
  slot.micro = {
      .sequences = batch.sequences,
      .length = batch.length,
      .tokens = upload(device_, slot.keep, batch.tokens, "batch.tokens"),
      .targets = upload(device_, slot.keep, batch.targets, "batch.targets"),
      .positions = upload(device_, slot.keep, batch.positions, "batch.positions"),
      .weight = upload(device_, slot.keep, batch.weight, "batch.weight"),
      .rows = upload(device_, slot.keep, batch.rows, "batch.rows"),
      .first_visible = upload(device_, slot.keep, batch.first_visible, "batch.first_visible")};
}

LossSum Executor::run(const Program& program, std::span<const HostBatch> batches) {
  {
    Exec ex = exec();
    ops::fill(ex, {.out = env_.loss, .value = 0});
  }
  for (const Instr& instr : program) {
    Slot& slot = slots_[instr.slot];
    Exec ex = exec_in(slot);
    switch (instr.act) {
      case Act::Load: load(batches[instr.micro], slot); break;
      case Act::Forward: stage_.forward(ex, env_, slot.micro, {}, {}, slot.saved); break;
      case Act::Backward: stage_.backward(ex, env_, slot.micro, {}, {}, slot.saved); break;
    }
  }
  for (Slot& slot : slots_) slot.keep.release(0);
  device_.compute_stream().synchronize();
  double sums[2] = {0, 0};
  device_.download(env_.loss.data, sums, sizeof(sums));
  return {.loss = sums[0], .weight = sums[1]};
}

LossSum Executor::train(std::span<const HostBatch> batches, double grad_scale) {
  if (batches.size() != micros_) make_programs(batches.size());
  env_.training = true;
  env_.grad_scale = grad_scale;
  return run(train_program_, batches);
}

LossSum Executor::evaluate(std::span<const HostBatch> batches) {
  if (batches.size() != micros_) make_programs(batches.size());
  env_.training = false;
  return run(evaluate_program_, batches);
}

void Executor::infer(const HostBatch& batch, const Stage::Outputs& outputs) {
  env_.training = false;
  Slot& slot = slots_.front();
  load(batch, slot);
  Exec ex = exec_in(slot);
  stage_.infer(ex, env_, slot.micro, outputs);
  slot.keep.release(0);
}

ArenaSizes Executor::peaks() const {
  size_t keep = 0;
  for (const Slot& slot : slots_) keep = std::max(keep, slot.keep.peak());
  return {.keep = keep, .scratch = scratch_.peak(), .recompute = recompute_.peak()};
}

}  // namespace bev
