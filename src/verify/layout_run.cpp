#include "verify/layout_run.h"

#include <bit>
#include <mutex>

#include "base/check.h"
#include "comm/thread.h"
#include "data/loader.h"
#include "ops/make_device.h"
#include "plan/dry_run.h"
#include "tensor/visit.h"
#include "train/whole_model.h"
#include "verify/uneven_samples.h"

namespace bev {

namespace {

// Nobody waits longer for another rank.
constexpr std::chrono::minutes kRankLimit{10};

FlatRange noise_in(const ParamSpec& spec, const ModelConfig& model) {
  const bool cancels = model.position != PositionKind::Rope && !model.qk_norm;
  if (!cancels || !spec.name.ends_with("qkv.bias")) return {0, 0};
  return {spec.parts[0].extent, spec.parts[1].extent};
}

// The tensors of the whole model, filled with zeros.
std::vector<LogicalTensor> logical_tensors(const Config& config) {
  const Config whole = on_one_rank(config);
  const std::unique_ptr<Device> device = make_null_device(whole.device);
  const PlacedModel model(whole, *device);
  std::vector<LogicalTensor> tensors;
  for (const Param* param : model.params.distinct()) {
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
FlatRange share_with(const ParamStore& params, const FlatPlace& place, bool is_divided) {
  if (is_divided) {
    for (const FlatRange& section : params.sections()) {
      if (place.begin >= section.begin && place.begin < section.begin + section.count)
        return params.share_of(section);
    }
  }
  return {0, params.flat_elements()};
}

// Writes what this rank owns of a tensor into its logical place. `is_divided`: ranks that share the
// batch hold parts of it instead of copies.
void put_owned(const ParamStore& params, const FlatPlace& place, const std::vector<double>& local,
               bool is_divided, std::vector<double>& logical) {
  const ParamSpec& spec = place.param->spec;
  const ParallelLayout& layout = params.layout();
  const int of_batch = params.grid().coordinate(params.rank(), Axis::Data);
  if (!is_divided && of_batch != 0) return;
  const int rank = params.rank() - of_batch * layout.tensor * layout.context;
  const FlatRange share = share_with(params, place, is_divided);
  const Shape& here = place.param->value.shape;
  const int64_t columns = here.elements() / here[0];
  const int64_t all_columns = spec.shape.elements() / spec.shape[0];
  for (const Piece& piece : owned_pieces(spec, params.grid(), rank)) {
    const bool by_rows = piece.dim == 0;
    const int64_t rows = by_rows ? piece.extent : here[0];
    const int64_t run = by_rows ? columns : piece.extent;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t from =
          by_rows ? (piece.local_begin + r) * columns : r * columns + piece.local_begin;
      const int64_t to =
          by_rows ? (piece.logical_begin + r) * all_columns : r * all_columns + piece.logical_begin;
      for (int64_t c = 0; c < run; ++c) {
        const int64_t flat = place.begin + from + c;
        if (flat < share.begin || flat >= share.begin + share.count) continue;
        logical[static_cast<size_t>(to + c)] = local[static_cast<size_t>(from + c)];
      }
    }
  }
}

void put_all(const Assembly& assembly, StepOutcome& outcome) {
  const ParallelLayout& layout = assembly.params.layout();
  const bool is_divided = layout.zero > 0 && layout.data > 1;
  for (const FlatPlace& place : assembly.params.flat()) {
    const Param& param = *place.param;
    for (LogicalTensor& tensor : outcome.tensors) {
      if (tensor.name != param.spec.name) continue;
      const auto put = [&](const Tensor& from, bool divided, std::vector<double>& to) {
        put_owned(assembly.params, place, values_of(assembly.device, from), divided, to);
      };
      put(param.value, false, tensor.value);
      put(param.grad, is_divided, tensor.grad);
    }
  }
}

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

}  // namespace

void train_rank(
    const Config& config, Communicator& world, std::shared_ptr<const Samples> samples,
    int64_t steps,
    FunctionRef<void(int64_t step, const StepResult& result, Assembly& assembly)> after) {
  Groups groups(layout_of(config), world);
  const Plan plan = dry_run(config, {.rank = world.rank()});
  DeviceConfig own = config.device;
  own.threads = plan.threads;
  const std::unique_ptr<Device> device = make_device(own);
  Assembly assembly(config, *device, groups, plan.arenas);
  assembly.initialize();
  Loader loader(std::move(samples), Loader::shape_of(config, groups.coordinate(Axis::Data)));
  Stepper stepper(assembly, schedule_from(config, plan.batch.global_batch, plan.iterations));
  for (int64_t step = 0; step < steps; ++step) after(step, stepper.step(loader.next()), assembly);
  BEV_CHECK(device->allocated_bytes() == plan.memory_bytes(), Internal,
            "rank {} allocated {} bytes, planned were {}", world.rank(), device->allocated_bytes(),
            plan.memory_bytes());
}

std::vector<StepOutcome> train_layout(const Config& config, int64_t steps) {
  const auto samples = std::make_shared<UnevenSamples>(config.model.vocab);
  std::vector<StepOutcome> outcomes(static_cast<size_t>(steps));
  for (StepOutcome& outcome : outcomes) outcome.tensors = logical_tensors(config);
  std::vector<bool> is_reported(outcomes.size());
  std::mutex mutex;
  run_ranks(layout_of(config).world(), kRankLimit, [&](Communicator& world) {
    const auto record = [&](int64_t step, const StepResult& result, const Assembly& assembly) {
      const std::lock_guard lock(mutex);
      StepOutcome& outcome = outcomes[static_cast<size_t>(step)];
      const bool is_first = !is_reported[static_cast<size_t>(step)];
      BEV_CHECK(is_first || (same_bits(outcome.loss, result.loss) &&
                             same_bits(outcome.norm, result.grad_norm)),
                Numerics,
                "the ranks of one layout disagree in step {}: rank {} has the loss {} and the "
                "gradient norm {}, another {} and {}",
                step + 1, world.rank(), result.loss, result.grad_norm, outcome.loss, outcome.norm);
      is_reported[static_cast<size_t>(step)] = true;
      outcome.loss = result.loss;
      outcome.norm = result.grad_norm;
      put_all(assembly, outcome);
    };
    train_rank(config, world, samples, steps, record);
  });
  return outcomes;
}

}  // namespace bev
