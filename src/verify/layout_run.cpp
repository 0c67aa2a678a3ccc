#include "verify/layout_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>

#include "base/check.h"
#include "comm/thread_communicator.h"
#include "data/data_loader.h"
#include "model/family/family.h"
#include "ops/make_device.h"
#include "param/param_spec.h"
#include "plan/dry_run.h"
#include "tensor/dtype_dispatch.h"
#include "train/gather_model.h"

namespace bev {

namespace {

// Nobody waits longer for another rank.
constexpr std::chrono::minutes kRankLimit{10};

// Elements that the softmax cancels, so that their gradient is noise: also the bias of keys without
// rotation and QK norm.
FlatRange noise_in(const ParamSpec& spec, const ModelConfig& model) {
  if (is_bias_of_contexts(model, spec.name)) return {0, spec.shape.elements()};
  const bool cancels = model.position != PositionKind::Rope && !model.qk_norm;
  if (!cancels || spec.role != Role::Bias) return {};
  int64_t begin = 0;
  for (const Part& part : spec.place.parts) {
    if (part.name == "k") return {begin, part.extent};
    begin += part.extent;
  }
  return {};
}

// The tensors of the whole model, filled with zeros.
std::vector<LogicalTensor> logical_tensors(const Config& config, const ModelOptions& options) {
  const Config whole = single_rank_config(config);
  const std::unique_ptr<Device> device = make_null_device(whole.device);
  SingleRankWorld world;
  const RankModel model(whole, *device, world.groups, options);
  std::vector<LogicalTensor> tensors;
  for (const Param* param : model.params.all()) {
    const ParamSpec& spec = param->spec;
    const std::vector<double> zeros(static_cast<size_t>(spec.shape.elements()));
    tensors.push_back({spec.name, zeros, zeros, noise_in(spec, config.model)});
  }
  return tensors;
}

std::vector<double> values_of(Device& device, const ConstTensor& t) {
  std::vector<std::byte> bytes(bytes_of(t));
  device.download(t.data, bytes.data(), bytes.size());
  std::vector<double> values;
  values.reserve(static_cast<size_t>(t.shape.elements()));
  visit_floating(t.dtype, "a comparison", [&]<class T>() {
    const auto* data = reinterpret_cast<const T*>(bytes.data());
    for (int64_t i = 0; i < t.shape.elements(); ++i) values.push_back(static_cast<double>(data[i]));
  });
  return values;
}

// The elements that a rank has something to say about.
FlatRange share_with(const ParamStore& params, const FlatParam& place, bool is_sharded) {
  return is_sharded ? params.section_of(place.begin).shard() : FlatRange{0, params.flat_elements()};
}

// Writes what this rank owns of a tensor into its logical place. `is_sharded`: data-parallel ranks
// hold parts of it instead of copies.
void put_owned(const ParamStore& params, const FlatParam& place, const std::vector<double>& local,
               bool is_sharded, std::vector<double>& logical) {
  const ParamSpec& spec = place.param->spec;
  if (!is_sharded && params.shard_index(spec.place.grid) != 0) return;
  const FlatRange share = share_with(params, place, is_sharded);
  visit_runs(owned_pieces(spec, params.layout(), params.rank()), place.param->value.shape,
             spec.shape, [&](int64_t from, int64_t to, int64_t count) {
               const int64_t begin = std::max(share.begin - place.begin, from);
               const int64_t end = std::min(share.end() - place.begin, from + count);
               for (int64_t i = begin; i < end; ++i)
                 logical[static_cast<size_t>(to + i - from)] = local[static_cast<size_t>(i)];
             });
}

// The gradient of a parameter as this rank has it; zero where another rank has the share.
std::vector<double> gradient_of(const TrainingState& state, const FlatParam& place) {
  const ParamStore& params = state.params;
  if (params.layout().zero < 2) return values_of(state.device, place.param->grad);
  std::vector<double> local(static_cast<size_t>(place.param->value.shape.elements()));
  for (const FlatSection& section : params.sections()) {
    const FlatRange share = section.shard();
    const int64_t begin = std::max(share.begin, place.begin);
    const int64_t end = std::min(share.end(), place.begin + static_cast<int64_t>(local.size()));
    if (begin >= end) continue;
    const std::vector<double> part = values_of(state.device, state.grads.range(begin, end - begin));
    std::copy(part.begin(), part.end(), local.begin() + (begin - place.begin));
  }
  return local;
}

// What a rank holds of a parameter.
struct Held {
  const FlatParam* place;
  std::vector<double> value, grad;
};

// All ranks call it together: divided parameters are gathered.
std::vector<Held> held_by(TrainingState& state) {
  std::vector<Held> all;
  Exec ex = state.executor.exec();
  for (const FlatParam& place : state.params.flat()) {
    state.param_gather.gather(ex, place.param->bucket);
    all.push_back({&place, values_of(state.device, place.param->value), gradient_of(state, place)});
  }
  return all;
}

void put_all(const ParamStore& params, const std::vector<Held>& all, StepOutcome& outcome) {
  const bool is_sharded = params.layout().zero > 0;
  for (const Held& held : all) {
    for (LogicalTensor& tensor : outcome.tensors) {
      if (tensor.name != held.place->param->spec.name) continue;
      put_owned(params, *held.place, held.value, false, tensor.value);
      put_owned(params, *held.place, held.grad, is_sharded, tensor.grad);
    }
  }
}

std::vector<StepOutcome> empty_outcomes(const Config& config, int64_t steps,
                                        const ModelOptions& options = {}) {
  std::vector<StepOutcome> outcomes(static_cast<size_t>(steps));
  for (StepOutcome& outcome : outcomes) outcome.tensors = logical_tensors(config, options);
  return outcomes;
}

void require_planned(double sent, double step, int64_t steps, const char* axis, int rank) {
  BEV_CHECK(std::abs(sent - static_cast<double>(steps) * step) <= 1e-9 * sent, Internal,
            "rank {} sent {} bytes ({}) in {} steps, planned were {} in each", rank, sent, axis,
            steps, step);
}

// Cuts sequence `at` of masked tokens down to a short pair of segments; the rest becomes padding.
void cut_short(HostBatch& batch, int64_t at, int64_t most) {
  int32_t& length = batch.lengths[static_cast<size_t>(at)];
  length = static_cast<int32_t>(std::min<int64_t>(length, most));
  const int64_t first = at * batch.length, each = batch.targets_each();
  for (int64_t position = 0; position < batch.length; ++position) {
    const auto row = static_cast<size_t>(first + position);
    const bool is_padding = position >= length;
    if (is_padding) batch.tokens[row] = 0;
    batch.types[row] = !is_padding && position >= length / 2 ? 1 : 0;
  }
  for (int64_t i = at * each; i < (at + 1) * each; ++i) {
    const auto entry = static_cast<size_t>(i);
    if (batch.marked[entry] < first + length) continue;
    batch.marked[entry] = static_cast<int32_t>(first);
    batch.targets[entry] = 0;
    batch.weight[entry] = 0;
  }
}

// Cuts sequence `at` of a text down to `most` tokens; the rest becomes padding.
void cut_text(HostText& text, int64_t at, int64_t most) {
  int32_t& length = text.lengths[static_cast<size_t>(at)];
  length = static_cast<int32_t>(std::min<int64_t>(length, most));
  for (int64_t position = length; position < text.length; ++position) {
    const auto row = static_cast<size_t>(at * text.length + position);
    text.tokens[row] = 0;
    if (!text.weight.empty()) text.weight[row] = 0;
  }
}

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

void require_agreement(int64_t step, int rank, const StepOutcome& here, const StepOutcome& other) {
  BEV_CHECK(same_bits(here.loss, other.loss) && same_bits(here.norm, other.norm), Numerics,
            "the ranks of one layout disagree in step {}: rank {} has the loss {} and the gradient "
            "norm {}, another {} and {}",
            step + 1, rank, here.loss, here.norm, other.loss, other.norm);
}

// Adds what the other ranks have put into theirs to this outcome: places that others own are zero.
// Returns the loss and the norm of the first rank.
StepOutcome gathered(TrainingState& state, Communicator& world, StepOutcome& outcome) {
  std::vector<std::vector<double>*> parts;
  for (LogicalTensor& tensor : outcome.tensors) {
    parts.push_back(&tensor.grad);
    parts.push_back(&tensor.value);
  }
  std::vector<double> numbers(2);
  if (world.rank() == 0) numbers = {outcome.loss, outcome.norm};
  parts.push_back(&numbers);
  std::vector<double> all;
  for (const std::vector<double>* part : parts) all.insert(all.end(), part->begin(), part->end());

  Exec ex = state.executor.exec();
  const size_t bytes = all.size() * sizeof(double);
  const Buffer buffer(ex.device, bytes, "comparison");
  ex.device.upload(all.data(), buffer.data(), bytes);
  world.all_reduce(ex, tensor_over(buffer.data(), DType::f64, {std::ssize(all)}));
  ex.stream.synchronize();
  ex.device.download(buffer.data(), all.data(), bytes);
  auto from = all.cbegin();
  for (std::vector<double>* part : parts) {
    std::copy_n(from, part->size(), part->begin());
    from += std::ssize(*part);
  }
  return {.loss = numbers[0], .norm = numbers[1], .tensors = {}};
}

}  // namespace

std::unique_ptr<Device> rank_device(const Config& config) {
  DeviceConfig own = config.device;
  own.threads = threads_of_rank(config);
  own.autotune = false;
  return make_device(own);
}

void train_rank(
    const Config& config, Device& device, Communicator& world,
    std::shared_ptr<const Dataset> samples, int64_t steps,
    FunctionRef<void(int64_t step, const StepResult& result, TrainingState& state)> after,
    const ModelOptions& options) {
  ProcessGroups groups(layout_of(config), world);
  const Plan plan = dry_run(config, {.rank = world.rank(), .model = options});
  TrainingState state(config, device, groups, plan.arenas, options);
  state.initialize();
  DataLoader loader(std::move(samples),
                    DataLoader::shape_of(config, state.spec.batch, groups.coordinate(Axis::Data)));
  StepRunner stepper(state, lr_schedule_from(config, plan.batch.global_batch, plan.iterations));
  CommVolume sent;
  for (int64_t step = 0; step < steps; ++step) {
    const CommVolume before = groups.sent();
    const StepResult result = stepper.step(loader.next());
    const CommVolume then = groups.sent();
    sent.tensor += then.tensor - before.tensor;
    sent.data += then.data - before.data;
    sent.pipeline += then.pipeline - before.pipeline;
    after(step, result, state);
  }
  require_planned(sent.tensor, plan.sent.tensor, steps, "tensor", world.rank());
  require_planned(sent.data, plan.sent.data, steps, "data", world.rank());
  require_planned(sent.pipeline, plan.sent.pipeline, steps, "pipeline", world.rank());
  BEV_CHECK(device.allocated_bytes() == plan.memory_bytes(), Internal,
            "rank {} allocated {} bytes, planned were {}", world.rank(), device.allocated_bytes(),
            plan.memory_bytes());
}

std::vector<StepOutcome> train_layout(const Config& config, int64_t steps,
                                      const ModelOptions& options) {
  const auto samples = std::make_shared<UnevenDataset>(config.model.vocab);
  std::vector<StepOutcome> outcomes = empty_outcomes(config, steps, options);
  std::vector<bool> is_reported(outcomes.size());
  std::mutex mutex;
  run_ranks(layout_of(config).world(), kRankLimit, [&](Communicator& world) {
    const std::unique_ptr<Device> device = rank_device(config);
    const auto record = [&](int64_t step, const StepResult& result, TrainingState& state) {
      const std::vector<Held> held = held_by(state);
      const std::lock_guard lock(mutex);
      StepOutcome& outcome = outcomes[static_cast<size_t>(step)];
      const StepOutcome here{.loss = result.loss, .norm = result.grad_norm, .tensors = {}};
      if (is_reported[static_cast<size_t>(step)])
        require_agreement(step, world.rank(), here, outcome);
      is_reported[static_cast<size_t>(step)] = true;
      outcome.loss = here.loss;
      outcome.norm = here.norm;
      put_all(state.params, held, outcome);
    };
    train_rank(config, *device, world, samples, steps, record, options);
  });
  return outcomes;
}

std::vector<StepOutcome> train_layout(const Config& config, int64_t steps, Device& device,
                                      Communicator& world) {
  std::vector<StepOutcome> outcomes = empty_outcomes(config, steps);
  const auto record = [&](int64_t step, const StepResult& result, TrainingState& state) {
    StepOutcome& outcome = outcomes[static_cast<size_t>(step)];
    outcome.loss = result.loss;
    outcome.norm = result.grad_norm;
    put_all(state.params, held_by(state), outcome);
    require_agreement(step, world.rank(), outcome, gathered(state, world, outcome));
  };
  train_rank(config, device, world, std::make_shared<UnevenDataset>(config.model.vocab), steps,
             record);
  return outcomes;
}

void UnevenDataset::read(int64_t index, HostBatch& batch, int64_t at) const {
  tokens_.read(index, batch, at);
  const bool is_pair = batch.text_count() > 1;
  if (is_pair && index % 3 == 1) cut_text(batch.text(0), at, 2 + index % 5);
  if (is_pair && index % 4 == 1) cut_text(batch.text(1), at, 1 + index % 3);
  if (!is_pair && !batch.lengths.empty() && index % 3 == 1) cut_short(batch, at, 3 + index % 4);
  HostText& predicted = batch.text(batch.text_count() - 1);
  const int64_t each = predicted.targets_each();
  for (int64_t i = 0; i < each; ++i) {
    const bool counts = index % 5 != 3 && (i * 7 + index * index) % 4 >= index % 3;
    float& weight = predicted.weight[static_cast<size_t>(at * each + i)];
    weight = counts ? weight : 0.0f;
  }
  if (!batch.label_weight.empty() && index % 4 == 2)
    batch.label_weight[static_cast<size_t>(at)] = 0;
  const bool is_packed = !batch.document_start.empty();
  if (is_packed) batch.separate(at, batch.length / (2 + index % 3), batch.length);
}

}  // namespace bev
