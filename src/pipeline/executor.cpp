#include "pipeline/executor.h"

#include <array>
#include <set>

#include "base/check.h"
#include "ops/elementwise.h"
#include "pipeline/schedule.h"

namespace bev {

namespace {

// Batches that grow come with new keys; the old ones are then of no use.
constexpr size_t kMostGraphs = 16;

std::vector<bool> lasts_of(const Program& program) {
  std::set<std::pair<Act, int>> seen;
  std::vector<bool> is_last(program.size());
  for (size_t i = program.size(); i-- > 0;)
    is_last[i] = seen.insert({program[i].act, program[i].chunk}).second;
  return is_last;
}

// Each micro-batch forward and backward before the next, in the same memory.
bool is_one_after_another(const Program& program) {
  for (size_t i = 0; i < program.size(); ++i) {
    constexpr std::array kActs{Act::Load, Act::Forward, Act::Backward};
    if (program[i].act != kActs[i % 3] || program[i].slot != 0 || program[i].chunk != 0)
      return false;
  }
  return program.size() % 3 == 0;
}

}  // namespace

Executor::Executor(RankModel& model, int64_t micros, const ArenaSizes& sizes)
    : model_(model),
      device_(model.device),
      env_(model.env),
      pipeline_(model.groups.over({Axis::Pipeline})),
      feed_(device_, sizes.batch, static_cast<size_t>(slots_of(program_for(micros)))),
      scratch_(device_, sizes.scratch, "scratch"),
      recompute_(device_, sizes.recompute, "recomputation"),
      loss_(device_, 2 * sizeof(double), "scalars"),
      graphs_(device_, kMostGraphs) {
  const Program& program = program_for(micros);
  slots_.reserve(static_cast<size_t>(slots_of(program)));
  for (size_t chunk = 0; chunk < model.stages.size(); ++chunk) {
    first_slots_.push_back(slots_.size());
    const int count = slots_of(program, static_cast<int>(chunk));
    for (int i = 0; i < count; ++i) {
      slots_.push_back(
          {Arena(device_, sizes.keep, "activations"), model.stages[chunk].make_saved()});
    }
  }
  env_.loss = tensor_over(loss_.data(), DType::f64, {2});
}

const Executor::Programs& Executor::programs_for(size_t micros) {
  const auto known = programs_.find(micros);
  if (known != programs_.end()) return known->second;
  const auto count = static_cast<int64_t>(micros);
  const PipelineShape shape = pipeline_shape(model_.config, count);
  const auto rank = static_cast<size_t>(pipeline_.rank());
  std::vector<Program> train = step_schedule(model_.config, count);
  verify_schedule(train, shape);
  std::vector<Program> evaluate = forward_only(shape);
  verify_schedule(evaluate, shape, {}, false);
  Programs programs{train[rank], evaluate[rank], lasts_of(train[rank])};
  return programs_.emplace(micros, std::move(programs)).first->second;
}

size_t Executor::index_of(const Instr& instr) const {
  return first_slots_[instr.chunk] + instr.slot;
}

Exec Executor::exec_in(Slot& slot) {
  return {device_, device_.compute_stream(), slot.keep, scratch_, recompute_, cost_, trace_,
          waits_};
}

Exec Executor::exec() { return exec_in(slots_.front()); }

// What travels between stages.
Tensor Executor::hidden(Slot& slot, const char* name) const {
  const int64_t rows = env_.tensor.local_row_count(slot.micro.tokens_count());
  return slot.keep.allocate({rows, model_.blueprint.shape.width}, model_.params.dtype(), name);
}

void Executor::wait_send(Slot& slot, SendTicket Slot::* sent) {
  Exec ex = exec_in(slot);
  pipeline_.wait_send(ex, slot.*sent);
  slot.*sent = {};
}

// The slot's memory is free when the next stage has the output. The gradient that was sent from it
// may still be on its way: it lies in front, where nothing else comes.
void Executor::empty(Slot& slot) {
  wait_send(slot, &Slot::forward);
  slot.input = slot.output = slot.doutput = slot.dinput = {};
  slot.keep.release(0);
}

void Executor::execute(const Instr& instr, std::span<const HostBatch> batches) {
  const size_t index = index_of(instr);
  Slot& slot = slots_[index];
  Stage& stage = model_.stages[instr.chunk];
  Exec ex = exec_in(slot);
  const ParallelLayout& layout = model_.groups.layout();
  const int ranks = layout.pipeline, rank = pipeline_.rank();
  const int before = (rank + ranks - 1) % ranks, behind = (rank + 1) % ranks;
  const int number = instr.chunk * ranks + rank;
  const bool is_first = number == 0, is_last = number == layout.stages() - 1;
  switch (instr.act) {
    case Act::Load:
      empty(slot);
      slot.micro = feed_.upload(batches[instr.micro], index);
      if (env_.training && !is_first) slot.dinput = hidden(slot, "stage.dinput");
      break;
    case Act::RecvForward:
      if (!env_.training || stage.backward_reads_input(env_)) {
        slot.input = hidden(slot, "stage.input");
      } else {
        wait_send(slot, &Slot::backward);
        slot.input = slot.dinput;
      }
      pipeline_.recv(ex, slot.input, before, Channel::Forward);
      break;
    case Act::Forward:
      if (!is_last) slot.output = hidden(slot, "stage.output");
      stage.forward(ex, env_, slot.micro, slot.input, slot.output, slot.saved);
      break;
    case Act::SendForward:
      slot.forward = pipeline_.send(ex, slot.output, behind, Channel::Forward);
      break;
    case Act::RecvBackward:
      slot.doutput = hidden(slot, "stage.doutput");
      pipeline_.recv(ex, slot.doutput, behind, Channel::Backward);
      break;
    case Act::Backward:
    case Act::BackwardInput:
      wait_send(slot, &Slot::backward);
      env_.deferred_weight_grads = instr.act == Act::BackwardInput ? &slot.postponed : nullptr;
      stage.backward(ex, env_, slot.micro, slot.doutput, slot.dinput, slot.saved);
      env_.deferred_weight_grads = nullptr;
      break;
    case Act::BackwardWeight:
      for (DeferredWeightGrad& gradient : slot.postponed) gradient.compute(ex);
      slot.postponed.clear();
      break;
    case Act::SendBackward:
      slot.backward = pipeline_.send(ex, slot.dinput, before, Channel::Backward);
      break;
  }
}

void Executor::run(const Program& program, const std::vector<bool>& is_last,
                   std::span<const HostBatch> batches) {
  {
    Exec ex = exec();
    ops::fill(ex, {.out = env_.loss, .value = 0});
  }
  try {
    for (size_t i = 0; i < program.size(); ++i) {
      env_.is_last_micro = !is_last.empty() && is_last[i];
      execute(program[i], batches);
    }
    for (Slot& slot : slots_) {
      empty(slot);
      wait_send(slot, &Slot::backward);
    }
  } catch (const std::exception& error) {
    // Others may be reading what this rank has sent.
    pipeline_.abort(error.what());
    throw;
  }
}

bool Executor::can_capture(const Program& program) const {
  return device_.supports_graphs() && !device_.is_autotuning() &&
         model_.groups.world().size() == 1 && trace_ == nullptr && cost_ == nullptr &&
         is_one_after_another(program);
}

void Executor::run_with_graphs(const Program& program, std::span<const HostBatch> batches) {
  Exec ex = exec();
  ops::fill(ex, {.out = env_.loss, .value = 0});
  for (size_t i = 0; i < program.size(); i += 3) {
    execute(program[i], batches);
    Slot& slot = slots_.front();
    const bool is_first = program[i].micro == 0;
    const MicroBatchKey key{.tokens = slot.micro.tokens.data,
                            .document_start = slot.micro.document_start.data,
                            .sequences = slot.micro.sequences,
                            .length = slot.micro.length,
                            .grad_scale = env_.grad_scale,
                            .is_first = is_first};
    const auto work = [&] {
      slot.keep.release(0);
      if (is_first) model_.params.begin_gradients();
      execute(program[i + 1], batches);
      execute(program[i + 2], batches);
    };
    graphs_.run(key, ex.stream, work);
    // What the work leaves behind on the host, where a graph was launched.
    for (Param* param : model_.params.all()) param->grad_started = true;
  }
}

void Executor::train(std::span<const HostBatch> batches, double grad_scale) {
  env_.training = true;
  env_.grad_scale = grad_scale;
  const Programs& programs = programs_for(batches.size());
  if (can_capture(programs.train)) {
    run_with_graphs(programs.train, batches);
  } else {
    run(programs.train, programs.is_last, batches);
  }
}

LossSum Executor::evaluate(std::span<const HostBatch> batches) {
  env_.training = false;
  run(programs_for(batches.size()).evaluate, {}, batches);
  double sums[2] = {0, 0};
  Exec ex = exec();
  Communicator& all = model_.groups.over({Axis::Context, Axis::Data, Axis::Pipeline});
  if (all.size() > 1) all.all_reduce(ex, env_.loss);
  device_.download(env_.loss.data, sums, sizeof(sums));
  return {.loss = sums[0], .weight = sums[1]};
}

void Executor::infer(const HostBatch& batch, const Stage::InferenceOutputs& outputs) {
  env_.training = false;
  Slot& slot = slots_.front();
  empty(slot);
  slot.micro = feed_.upload(batch, 0);
  Exec ex = exec_in(slot);
  model_.stages.front().infer(ex, env_, slot.micro, {}, {}, outputs);
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
