#include "pipeline/executor.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "ops/elementwise.h"
#include "pipeline/schedule.h"

namespace bev {

namespace {

// A batch-size ramp uses new keys with every size and never returns to old ones.
constexpr size_t kMostGraphs = 16;

// One rank: each micro-batch runs forward and backward before the next one, in one slot.
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
      losses_(device_, model.spec.losses, model.config.loss.average),
      graphs_(device_, kMostGraphs) {
  const Program& program = program_for(micros);
  slots_.reserve(static_cast<size_t>(slots_of(program)));
  for (size_t chunk = 0; chunk < model.stages.size(); ++chunk) {
    first_slots_.push_back(slots_.size());
    const int count = slots_of(program, static_cast<int>(chunk));
    for (int i = 0; i < count; ++i) slots_.push_back(make_slot(chunk, sizes));
  }
  env_.losses = losses_.tensors();
}

Executor::Slot Executor::make_slot(size_t chunk, const ArenaSizes& sizes) {
  const Stage& stage = model_.stages[chunk];
  const std::vector<Tensor> none(model_.spec.hidden.size());
  Slot slot{.keep = Arena(device_, sizes.keep, "activations"),
            .saved = stage.make_saved(),
            .input = none,
            .output = none,
            .doutput = none,
            .dinput = none,
            .forward = {},
            .backward = {}};
  slot.forward.reserve(stage.outputs().size());
  slot.backward.reserve(stage.inputs().size());
  return slot;
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
  Programs programs{train[rank], evaluate[rank]};
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

Tensor Executor::hidden(Slot& slot, const Stage& stage, int state, const char* name) const {
  return slot.keep.allocate(stage.hidden_shape(env_, slot.micro, state), model_.params.dtype(),
                            name);
}

// One message per state, in order, on one channel.
void Executor::send(Slot& slot, const std::vector<int>& states, const std::vector<Tensor>& tensors,
                    int to, Channel channel, std::vector<SendTicket>& tickets) {
  Exec ex = exec_in(slot);
  for (const int state : states)
    tickets.push_back(pipeline_.send(ex, tensors[static_cast<size_t>(state)], to, channel));
}

void Executor::recv(Slot& slot, const std::vector<int>& states, const std::vector<Tensor>& tensors,
                    int from, Channel channel) {
  Exec ex = exec_in(slot);
  for (const int state : states)
    pipeline_.recv(ex, tensors[static_cast<size_t>(state)], from, channel);
}

void Executor::wait_sends(Slot& slot, std::vector<SendTicket>& tickets) {
  Exec ex = exec_in(slot);
  for (const SendTicket& ticket : tickets) pipeline_.wait_send(ex, ticket);
  tickets.clear();
}

// The slot's memory is free when the next stage has the output. A gradient that was sent from it
// may still be in flight: it is at the start of the arena, where nothing else is allocated.
void Executor::empty(Slot& slot) {
  wait_sends(slot, slot.forward);
  for (std::vector<Tensor>* tensors : {&slot.input, &slot.output, &slot.doutput, &slot.dinput})
    std::fill(tensors->begin(), tensors->end(), Tensor{});
  slot.keep.release(0);
}

void Executor::execute(const Instr& instr, std::span<const HostBatch> batches) {
  const size_t index = index_of(instr);
  Slot& slot = slots_[index];
  const Stage& stage = model_.stages[instr.chunk];
  Exec ex = exec_in(slot);
  const int ranks = model_.groups.layout().pipeline, rank = pipeline_.rank();
  const int before = (rank + ranks - 1) % ranks, behind = (rank + 1) % ranks;
  switch (instr.act) {
    case Act::Load:
      empty(slot);
      slot.micro = feed_.upload(batches[instr.micro], index);
      for (const int state : stage.inputs())
        if (env_.pass.training)
          slot.dinput[static_cast<size_t>(state)] = hidden(slot, stage, state, "stage.dinput");
      break;
    case Act::RecvForward:
      for (const int state : stage.inputs()) {
        const auto i = static_cast<size_t>(state);
        if (!env_.pass.training || stage.backward_reads_input(env_, state) ||
            stage.sends_input_on(state)) {
          slot.input[i] = hidden(slot, stage, state, "stage.input");
        } else {
          wait_sends(slot, slot.backward);
          slot.input[i] = slot.dinput[i];
        }
      }
      recv(slot, stage.inputs(), slot.input, before, Channel::Forward);
      break;
    case Act::Forward:
      for (const int state : stage.outputs()) {
        const auto i = static_cast<size_t>(state);
        slot.output[i] = stage.sends_input_on(state) ? slot.input[i]
                                                     : hidden(slot, stage, state, "stage.output");
      }
      stage.forward(ex, env_, slot.micro, slot.input, slot.output, slot.saved);
      break;
    case Act::SendForward:
      send(slot, stage.outputs(), slot.output, behind, Channel::Forward, slot.forward);
      break;
    case Act::RecvBackward:
      for (const int state : stage.outputs()) {
        const auto i = static_cast<size_t>(state);
        if (stage.passes_through(state)) {
          wait_sends(slot, slot.backward);
          slot.doutput[i] = slot.dinput[i];
        } else {
          slot.doutput[i] = hidden(slot, stage, state, "stage.doutput");
        }
      }
      recv(slot, stage.outputs(), slot.doutput, behind, Channel::Backward);
      break;
    case Act::Backward:
    case Act::BackwardInput:
      wait_sends(slot, slot.backward);
      env_.flow.defer_into(instr.act == Act::BackwardInput ? &slot.deferred : nullptr);
      stage.backward(ex, env_, slot.micro, slot.doutput, slot.dinput, slot.saved);
      env_.flow.defer_into(nullptr);
      break;
    case Act::BackwardWeight:
      for (DeferredWeightGrad& grad : slot.deferred) compute(ex, grad);
      slot.deferred.clear();
      break;
    case Act::SendBackward:
      send(slot, stage.inputs(), slot.dinput, before, Channel::Backward, slot.backward);
      break;
  }
}

void Executor::run(const Program& program, std::span<const HostBatch> batches) {
  {
    Exec ex = exec();
    ops::fill(ex, {.out = env_.losses.sums, .value = 0});
  }
  try {
    for (const Instr& instr : program) {
      if (cost_ != nullptr)
        cost_->set_place(phase_of(instr.act),
                         instr.chunk * model_.groups.layout().pipeline + pipeline_.rank());
      if (instr.act == Act::Forward && model_.stages[instr.chunk].has_heads())
        begin_losses(batches[instr.micro]);
      execute(instr, batches);
    }
    for (Slot& slot : slots_) {
      empty(slot);
      wait_sends(slot, slot.backward);
    }
    if (cost_ != nullptr) cost_->set_place(Phase::Update, -1);
  } catch (const std::exception& error) {
    // Other ranks may be reading tensors that this rank has sent.
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
  ops::fill(ex, {.out = env_.losses.sums, .value = 0});
  for (size_t i = 0; i < program.size(); i += 3) {
    execute(program[i], batches);
    begin_losses(batches[program[i].micro]);
    Slot& slot = slots_.front();
    const bool is_first = program[i].micro == 0;
    const auto& [first, second] = slot.micro.texts;
    const MicroBatchKey key{.tokens = first.tokens.data,
                            .document_start = first.document_start.data,
                            .sequences = first.sequences,
                            .lengths = {first.length, second.length},
                            .is_first = is_first};
    const auto work = [&] {
      slot.keep.release(0);
      if (is_first) model_.params.begin_gradients();
      execute(program[i + 1], batches);
      execute(program[i + 2], batches);
    };
    graphs_.run(key, ex.stream, work);
    // A launched graph does not change the host's state.
    for (Param* param : model_.params.all()) param->grad_started = true;
  }
}

void Executor::begin_losses(const HostBatch& batch) {
  Exec ex = exec();
  losses_.begin_micro_batch(ex, batch, env_.pass.training);
}

void Executor::train(std::span<const HostBatch> batches) {
  env_.pass.training = true;
  Exec ex = exec();
  losses_.count(ex, model_.groups.over(shard_group(GridKind::Dense)), batches);
  env_.flow.begin_step(static_cast<int64_t>(batches.size()));
  const Programs& programs = programs_for(batches.size());
  if (can_capture(programs.train)) {
    run_with_graphs(programs.train, batches);
  } else {
    run(programs.train, batches);
  }
}

LossSums Executor::evaluate(std::span<const HostBatch> batches) {
  env_.pass.training = false;
  run(programs_for(batches.size()).evaluate, batches);
  LossSums sums{};
  Exec ex = exec();
  Communicator& all = model_.groups.over({Axis::Context, Axis::Data, Axis::Pipeline});
  if (all.size() > 1) all.all_reduce(ex, env_.losses.sums);
  device_.download(env_.losses.sums.data, sums.data(), bytes_of(env_.losses.sums));
  return sums;
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
