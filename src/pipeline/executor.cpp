#include "pipeline/executor.h"

#include "base/check.h"
#include "ops/elementwise.h"

namespace bev {

namespace {

Program verified(std::vector<Program> programs, const PipelineShape& shape, bool backward) {
  verify(programs, shape, {}, backward);
  return std::move(programs.front());
}

}  // namespace

Executor::Executor(Device& device, Stage& stage, ModelEnv& env, int64_t micros,
                   const ArenaSizes& sizes)
    : device_(device),
      stage_(stage),
      env_(env),
      feed_(device, sizes.batch,
            static_cast<size_t>(
                slots_of(build_schedule(ScheduleKind::OneFOneB, {.micros = micros}).front()))),
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
  train_program_ = verified(build_schedule(ScheduleKind::OneFOneB, shape), shape, true);
  evaluate_program_ = verified(forward_only(shape), shape, false);
  micros_ = micros;
}

Exec Executor::exec_in(Slot& slot) {
  return {device_, device_.compute_stream(), slot.keep, scratch_, recompute_, cost_, trace_};
}

Exec Executor::exec() { return exec_in(slots_.front()); }

void Executor::run(const Program& program, std::span<const HostBatch> batches) {
  {
    Exec ex = exec();
    ops::fill(ex, {.out = env_.loss, .value = 0});
  }
  for (const Instr& instr : program) {
    Slot& slot = slots_[instr.slot];
    Exec ex = exec_in(slot);
    switch (instr.act) {
      case Act::Load:
        slot.keep.release(0);
        slot.micro = feed_.load(batches[instr.micro]);
        break;
      case Act::Forward: stage_.forward(ex, env_, slot.micro, {}, {}, slot.saved); break;
      case Act::Backward: stage_.backward(ex, env_, slot.micro, {}, {}, slot.saved); break;
      default: BEV_CHECK(false, Internal, "{} in a program of one rank", name_of(instr.act));
    }
  }
  for (Slot& slot : slots_) slot.keep.release(0);
}

void Executor::train(std::span<const HostBatch> batches, double grad_scale) {
  if (batches.size() != micros_) make_programs(batches.size());
  env_.training = true;
  env_.grad_scale = grad_scale;
  run(train_program_, batches);
}

LossSum Executor::evaluate(std::span<const HostBatch> batches) {
  if (batches.size() != micros_) make_programs(batches.size());
  env_.training = false;
  run(evaluate_program_, batches);
  double sums[2] = {0, 0};
  device_.download(env_.loss.data, sums, sizeof(sums));
  return {.loss = sums[0], .weight = sums[1]};
}

void Executor::infer(const HostBatch& batch, const Stage::Outputs& outputs) {
  env_.training = false;
  Slot& slot = slots_.front();
  slot.keep.release(0);
  slot.micro = feed_.load(batch);
  Exec ex = exec_in(slot);
  stage_.infer(ex, env_, slot.micro, outputs);
  slot.keep.release(0);
}

ArenaSizes Executor::peaks() const {
  size_t keep = 0;
  for (const Slot& slot : slots_) keep = std::max(keep, slot.keep.peak());
  return {.keep = keep,
          .batch = feed_.peak(),
          .scratch = scratch_.peak(),
          .recompute = recompute_.peak()};
}

}  // namespace bev
