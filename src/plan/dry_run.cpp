#include "plan/dry_run.h"

#include <algorithm>
#include <optional>

#include "checkpoint/checkpoint_saver.h"
#include "comm/planning_communicator.h"
#include "ops/make_device.h"
#include "pipeline/schedule.h"
#include "train/gather_model.h"
#include "train/run_checkpoints.h"
#include "train/step_runner.h"
#include "train/training_state.h"

namespace bev {

namespace {

void set_use(std::vector<MemoryUse>& uses, std::string_view purpose, size_t bytes) {
  std::erase_if(uses, [&](const MemoryUse& use) { return use.purpose == purpose; });
  if (bytes > 0) uses.push_back({std::string(purpose), bytes});
}

void add_use(std::vector<MemoryUse>& uses, std::string_view purpose, size_t bytes) {
  if (bytes == 0) return;
  const auto found = std::find_if(uses.begin(), uses.end(),
                                  [&](const MemoryUse& use) { return use.purpose == purpose; });
  if (found != uses.end()) {
    found->bytes += bytes;
  } else {
    uses.push_back({std::string(purpose), bytes});
  }
}

std::vector<ModuleCount> count_modules(const ParamStore& params) {
  std::vector<ModuleCount> modules;
  for (const Param* param : params.all()) {
    const std::string kind = param_kind(param->spec.name);
    auto found = std::find_if(modules.begin(), modules.end(),
                              [&](const ModuleCount& m) { return m.name == kind; });
    if (found == modules.end()) found = modules.insert(modules.end(), {kind, 0, 0});
    ++found->instances;
    found->elements += param->value.shape.elements();
  }
  return modules;
}

std::vector<MemoryUse> contents_by_name(const Arena& arena) {
  std::vector<MemoryUse> uses;
  for (const auto& [name, bytes] : arena.peak_contents()) add_use(uses, name, bytes);
  std::sort(uses.begin(), uses.end(),
            [](const MemoryUse& a, const MemoryUse& b) { return a.bytes > b.bytes; });
  return uses;
}

DeviceConfig with_threads(DeviceConfig device, int threads) {
  device.threads = threads;
  return device;
}

struct StepCost {
  std::vector<OpCost> ops{};
  Cost total{};  // of ops
  CommVolume sent{};
};

uint16_t group_label(Axis axis) { return static_cast<uint16_t>(1 + static_cast<int>(axis)); }

// A step of `micros` micro-batches of one rank on the null device.
struct DryRunStep {
  DryRunStep(const Config& source, int threads, int64_t micros, int rank,
             const ModelOptions& options = {})
      : config(source),
        device(make_null_device(with_threads(source.device, threads))),
        world(rank, layout_of(source).world()),
        groups(layout_of(source), world) {
    config.train.global_batch = micros * resolve_batch(source).micro_batch * data_ranks(source);
    config.train.ramp_start = 0;
    groups.over({Axis::Tensor}).set_label(group_label(Axis::Tensor));
    groups.over(shard_group(GridKind::Dense)).set_label(group_label(Axis::Data));
    groups.over({Axis::Pipeline}).set_label(group_label(Axis::Pipeline));
    state = std::make_unique<TrainingState>(config, *device, groups, ArenaSizes{}, options);
    stepper = std::make_unique<StepRunner>(*state, LrSchedule{});
  }

  HostBatch micro_batch() const {
    HostBatch batch;
    batch.resize(resolve_batch(config).micro_batch, state->spec.batch);
    return batch;
  }

  StepCost step(const HostBatch& batch) const {
    const auto micros = static_cast<size_t>(resolve_batch(config).micros);
    const std::vector<HostBatch> batches(micros, batch);
    CostLog log;
    state->executor.count_into(&log);
    stepper->step(batches);
    state->executor.count_into(nullptr);
    return {.ops = {log.records().begin(), log.records().end()},
            .total = total_of(log.records()),
            .sent = groups.sent()};
  }

  Config config;
  std::unique_ptr<Device> device;
  PlanningCommunicator world;
  ProcessGroups groups;
  std::unique_ptr<TrainingState> state;
  std::unique_ptr<StepRunner> stepper;
};

// All micro-batches cost the same, so that dry runs with one and two determine the cost of any
// number.
StepCost extrapolate(const StepCost& one, const StepCost& two, int64_t micros) {
  const auto at = [&](double first, double second) {
    return first + static_cast<double>(micros - 1) * (second - first);
  };
  const auto &a = one.total, &b = two.total;
  return {.total = {.flops = at(a.flops, b.flops),
                    .model_flops = at(a.model_flops, b.model_flops),
                    .bytes_moved = at(a.bytes_moved, b.bytes_moved),
                    .bytes_sent = at(a.bytes_sent, b.bytes_sent)},
          .sent = {.tensor = at(one.sent.tensor, two.sent.tensor),
                   .data = at(one.sent.data, two.sent.data),
                   .pipeline = at(one.sent.pipeline, two.sent.pipeline),
                   .scalars = at(one.sent.scalars, two.sent.scalars)}};
}

struct ModelCounts {
  int64_t parameters;
  double flops_per_token;
};

// The whole model on one rank, dry-run on one sequence. No layout changes these numbers.
ModelCounts count_model(const Config& config, const ModelOptions& options) {
  Config single = single_rank_config(config);
  single.data.reset_attention = single.data.separate_sequences = false;
  const DryRunStep whole(single, 1, 1, 0, options);
  HostBatch batch;
  batch.resize(1, whole.state->spec.batch);
  const double flops = whole.step(batch).total.model_flops;
  return {.parameters = whole.state->params.elements(),
          .flops_per_token = flops / static_cast<double>(batch.tokens_count())};
}

std::vector<LocalPiece> written_pieces(const TrainingState& state, const CheckpointConfig& config) {
  std::vector<LocalPiece> pieces = weights_to_save(state.params);
  if (!config.save_optimizer) return pieces;
  for (LocalPiece& held : written_states(state.params, state.optimizer))
    pieces.push_back(std::move(held));
  return pieces;
}

int slots_in(const Config& config, const DryRunOptions& options) {
  const ParallelLayout layout = layout_of(config);
  const auto stage = static_cast<size_t>(layout.grid().coordinate(options.rank, Axis::Pipeline));
  if (options.schedule != nullptr) return options.schedule->slots[stage];
  return slots_of(step_schedule(config, resolve_batch(config).micros)[stage]);
}

}  // namespace

size_t sum_of(std::span<const MemoryUse> uses) {
  size_t total = 0;
  for (const MemoryUse& use : uses) total += use.bytes;
  return total;
}

std::vector<MemoryUse> memory_with(const Plan& plan, int slots) {
  std::vector<MemoryUse> memory = plan.memory;
  set_use(memory, "activations", plan.arenas.keep * static_cast<size_t>(slots));
  set_use(memory, "batches", plan.arenas.batch * BatchUploader::copies(slots));
  return memory;
}

std::vector<OpCost> record_step(const Config& config, int64_t micros, int rank) {
  const DryRunStep dry_step(config, threads_of_rank(config), micros, rank);
  return dry_step.step(dry_step.micro_batch()).ops;
}

Plan dry_run(const Config& config, const DryRunOptions& options) {
  const int threads = threads_of_rank(config);
  DryRunStep dry_step(config, threads, 1, options.rank, options.model);
  TrainingState& state = *dry_step.state;
  const ModelCounts whole = count_model(config, options.model);
  Plan plan{.model = state.shape,
            .batch = resolve_batch(config),
            .iterations = resolve_iterations(config),
            .device = config.device.kind,
            .dtype = resolve_dtype(config),
            .threads = threads,
            .layout = layout_of(config),
            .rank = options.rank,
            .model_parameters = whole.parameters,
            .parameters = state.params.elements(),
            .modules = count_modules(state.params),
            .model_flops_per_token = whole.flops_per_token};

  const HostBatch batch = dry_step.micro_batch();
  const StepCost one = dry_step.step(batch);
  const StepCost two = DryRunStep(config, threads, 2, options.rank, options.model).step(batch);
  const StepCost step = extrapolate(one, two, plan.batch.micros);
  plan.step = step.total;
  plan.sent = step.sent;
  plan.activations = contents_by_name(state.executor.keep());
  plan.scratch = contents_by_name(state.executor.scratch());
  state.executor.evaluate({&batch, 1});

  // On host devices, the copy that an asynchronous checkpoint is written from is in the same
  // memory.
  std::optional<HostSnapshot> copy;
  if (!save_folder(config).empty()) {
    plan.checkpoint_bytes = checkpoint_bytes(config);
    if (config.checkpoint.asynchronous && plan.device != DeviceKind::Cuda)
      copy.emplace(*dry_step.device, written_pieces(state, config.checkpoint));
  }
  plan.arenas = state.executor.peaks();
  plan.memory = dry_step.device->memory();
  add_use(plan.memory, "scratch", plan.arenas.scratch);
  add_use(plan.memory, "recomputation", plan.arenas.recompute);
  // The dry runs had few micro-batches; the number in flight follows from the real schedule.
  plan.slots = slots_in(config, options);
  plan.memory = memory_with(plan, plan.slots);
  std::erase_if(plan.memory, [](const MemoryUse& use) { return use.bytes == 0; });
  return plan;
}

}  // namespace bev
