#include "plan/dry_run.h"

#include <algorithm>

#include "comm/phantom.h"
#include "ops/make_device.h"
#include "train/assembly.h"
#include "train/step.h"
#include "train/whole_model.h"

namespace bev {

namespace {

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
  for (const Param* param : params.distinct()) {
    const std::string kind = kind_of(param->spec.name);
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

void infer_once(Assembly& assembly, const HostBatch& batch) {
  const ModelShape& shape = assembly.blueprint.shape;
  const Tensor logits = tensor_over(static_cast<std::byte*>(nullptr), assembly.params.dtype(),
                                    {batch.tokens_count(), shape.padded_vocab});
  assembly.executor.infer(batch, {.hidden = {}, .final_norm = {}, .logits = logits});
}

int64_t count_parameters(const Config& config) {
  const Config whole = on_one_rank(config);
  const std::unique_ptr<Device> device = make_null_device(whole.device);
  return PlacedModel(whole, *device).params.elements();
}

DeviceConfig with_threads(DeviceConfig device, int threads) {
  device.threads = threads;
  return device;
}

// A step of `micros` micro-batches of one rank on the null device.
struct Rehearsal {
  Rehearsal(const Config& source, int threads, int64_t micros, int rank)
      : config(source),
        device(make_null_device(with_threads(source.device, threads))),
        world(rank, layout_of(source).world()),
        groups(layout_of(source), world) {
    config.train.global_batch = micros * resolve_batch(source).micro_batch * data_ranks(source);
    config.train.ramp_start = 0;
    assembly = std::make_unique<Assembly>(config, *device, groups, ArenaSizes{});
    stepper = std::make_unique<Stepper>(*assembly, ScheduleSpec{});
  }

  Cost step(const HostBatch& batch) const {
    const auto micros = static_cast<size_t>(resolve_batch(config).micros);
    const std::vector<HostBatch> batches(micros, batch);
    Cost cost;
    assembly->executor.count_into(&cost);
    stepper->step(batches);
    assembly->executor.count_into(nullptr);
    return cost;
  }

  Config config;
  std::unique_ptr<Device> device;
  PhantomCommunicator world;
  Groups groups;
  std::unique_ptr<Assembly> assembly;
  std::unique_ptr<Stepper> stepper;
};

// All micro-batches cost the same, so two rehearsals tell the cost of any number.
Cost extrapolate(const Cost& one, const Cost& two, int64_t micros) {
  const double more = static_cast<double>(micros - 1);
  return {.flops = one.flops + more * (two.flops - one.flops),
          .bytes_moved = one.bytes_moved + more * (two.bytes_moved - one.bytes_moved),
          .bytes_sent = one.bytes_sent + more * (two.bytes_sent - one.bytes_sent)};
}

}  // namespace

size_t Plan::memory_bytes() const {
  size_t total = 0;
  for (const MemoryUse& use : memory) total += use.bytes;
  return total;
}

double model_flops_per_token(const Config& config) {
  const ModelShape m = resolve_model(config);
  const double width = static_cast<double>(m.width);
  const double heads = static_cast<double>(m.heads * m.head_dim);
  const double kv = static_cast<double>(m.kv_heads * m.head_dim);
  const double ffn = static_cast<double>(m.ffn);
  const double mlp = width * ffn * (is_gated(config.model.activation) ? 3 : 2);
  const double per_layer = width * (heads + 2 * kv) + heads * width + mlp;
  const double layers = static_cast<double>(m.layers);
  const double head = width * static_cast<double>(m.padded_vocab);
  const double length = static_cast<double>(config.train.sequence);
  return 6 * (layers * per_layer + head) + 6 * layers * heads * length;
}

Plan dry_run(const Config& config, const DryRunOptions& options) {
  const int threads = threads_of_rank(config);
  Rehearsal rehearsal(config, threads, 1, options.rank);
  Assembly& assembly = *rehearsal.assembly;
  Plan plan{.model = assembly.blueprint.shape,
            .batch = resolve_batch(config),
            .iterations = resolve_iterations(config),
            .device = config.device.kind,
            .dtype = resolve_dtype(config),
            .threads = threads,
            .layout = layout_of(config),
            .rank = options.rank,
            .model_parameters = count_parameters(config),
            .parameters = assembly.params.elements(),
            .modules = count_modules(assembly.params),
            .model_flops_per_token = model_flops_per_token(config)};

  HostBatch batch;
  batch.resize(plan.batch.micro_batch, plan.batch.sequence,
               options.packed || config.data.is_packed());
  const Cost one = rehearsal.step(batch);
  plan.step = extrapolate(one, Rehearsal(config, threads, 2, options.rank).step(batch), plan.batch.micros);
  plan.activations = contents_by_name(assembly.executor.keep());
  plan.scratch = contents_by_name(assembly.executor.scratch());
  assembly.executor.evaluate({&batch, 1});
  if (options.inference) infer_once(assembly, batch);

  plan.arenas = assembly.executor.peaks();
  plan.memory = rehearsal.device->memory();
  // The rehearsals had few micro-batches; how many are in flight follows from the real number.
  const Program program = assembly.executor.program_for(plan.batch.micros);
  plan.slots = slots_of(program);
  add_use(plan.memory, "activations", plan.arenas.keep * static_cast<size_t>(plan.slots));
  add_use(plan.memory, "batches", plan.arenas.batch * BatchFeed::copies(plan.slots));
  add_use(plan.memory, "scratch", plan.arenas.scratch);
  add_use(plan.memory, "recomputation", plan.arenas.recompute);
  std::erase_if(plan.memory, [](const MemoryUse& use) { return use.bytes == 0; });
  return plan;
}

}  // namespace bev
