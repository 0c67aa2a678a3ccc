#include "support/layout_run.h"

#include <cmath>
#include <mutex>

#include "comm/thread.h"
#include "data/loader.h"
#include "data/mock_samples.h"
#include "ops/make_device.h"
#include "plan/dry_run.h"
#include "support/small_run.h"
#include "train/step.h"

namespace bev::test {

namespace {

class MaskedSamples final : public Samples {
 public:
  explicit MaskedSamples(int64_t vocab) : tokens_(vocab, 7) {}
  void read(int64_t index, HostBatch& batch, int64_t at) const override {
    tokens_.read(index, batch, at);
    for (int64_t i = 0; i < batch.length; ++i) {
      const bool counts = index % 5 != 3 && (i * 7 + index * index) % 4 >= index % 3;
      batch.weight[static_cast<size_t>(at * batch.length + i)] = counts ? 1.0f : 0.0f;
    }
  }
  std::string describe(int64_t index) const override { return tokens_.describe(index); }

 private:
  MockSamples tokens_;
};

// Writes what this rank owns of a tensor into its logical place.
void put_owned(const ParamStore& params, const FlatPlace& place, const std::vector<double>& local,
               bool is_divided, LogicalTensors& whole) {
  const ParamSpec& spec = place.param->spec;
  std::vector<double>& logical = whole[spec.name];
  logical.resize(static_cast<size_t>(spec.shape.elements()));
  const ParallelLayout& layout = params.layout();
  // Who shares the batch holds the same, or a share of the sums.
  const int of_batch = params.grid().coordinate(params.rank(), Axis::Data);
  if (!is_divided && of_batch != 0) return;
  const int rank = params.rank() - of_batch * layout.tensor * layout.context;
  FlatRange share{0, params.flat_elements()};
  if (is_divided) {
    for (const FlatRange& section : params.sections()) {
      if (place.begin >= section.begin && place.begin < section.begin + section.count)
        share = params.share_of(section);
    }
  }
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

// The gradient of a parameter as this rank has it; zero where another rank has the share.
std::vector<double> gradient_of(Assembly& assembly, const FlatPlace& place) {
  const ParamStore& params = assembly.params;
  if (params.layout().zero < 2) return values_of(assembly.device, place.param->grad);
  std::vector<double> local(static_cast<size_t>(place.param->value.shape.elements()));
  for (const FlatSection& section : params.sections()) {
    const FlatRange share = params.share_of(section);
    const int64_t begin = std::max(share.begin, place.begin);
    const int64_t end = std::min(share.end(), place.begin + static_cast<int64_t>(local.size()));
    if (begin >= end) continue;
    const std::vector<double> part =
        values_of(assembly.device, assembly.grads.range(begin, end - begin));
    std::copy(part.begin(), part.end(), local.begin() + (begin - place.begin));
  }
  return local;
}

void require_planned_bytes(const SentBytes& sent, const SentBytes& step, int steps, int rank) {
  const auto require = [&](double all, double one, const char* axis) {
    BEV_CHECK(std::abs(all - steps * one) <= 1e-9 * all, Internal,
              "rank {} sent {} bytes ({}) in {} steps, planned were {} in each", rank, all, axis,
              steps, one);
  };
  require(sent.tensor, step.tensor, "tensor");
  require(sent.data, step.data, "data");
  require(sent.pipeline, step.pipeline, "pipeline");
  require(sent.scalars, step.scalars, "scalars");
}

}  // namespace

Trained train_layout(const Config& asked, int steps) {
  const Config config = SmallRun::without_memory(asked);
  const ParallelLayout layout = layout_of(config);
  Trained trained;
  std::mutex mutex;
  run_ranks(layout.world(), std::chrono::seconds(120), [&](Communicator& world) {
    Groups groups(layout, world);
    const Plan plan = dry_run(config, {.rank = world.rank()});
    const std::unique_ptr<Device> device = make_device(config.device);
    Assembly assembly(config, *device, groups, plan.arenas);
    assembly.initialize();
    Loader loader(std::make_shared<MaskedSamples>(plan.model.vocab),
                  Loader::shape_of(config, groups.coordinate(Axis::Data)));
    Stepper stepper(assembly, schedule_from(config, plan.batch.global_batch, plan.iterations));
    std::vector<double> losses, norms;
    for (int i = 0; i < steps; ++i) {
      const StepResult result = stepper.step(loader.next());
      losses.push_back(result.loss);
      norms.push_back(result.grad_norm);
    }
    BEV_CHECK(device->allocated_bytes() == plan.memory_bytes(), Internal,
              "rank {} allocated {} bytes, planned were {}", world.rank(),
              device->allocated_bytes(), plan.memory_bytes());
    require_planned_bytes(groups.sent(), plan.sent, steps, world.rank());
    const bool is_divided = layout.zero > 0 && layout.data > 1;
    std::map<std::string, std::vector<double>> values;
    Exec ex = assembly.executor.exec();
    for (const FlatPlace& place : assembly.params.flat()) {
      assembly.leases.need(ex, place.param->bucket);
      values[place.param->spec.name] = values_of(*device, place.param->value);
    }
    const std::lock_guard lock(mutex);
    for (const FlatPlace& place : assembly.params.flat()) {
      put_owned(assembly.params, place, values[place.param->spec.name], false, trained.values);
      put_owned(assembly.params, place, gradient_of(assembly, place), is_divided, trained.grads);
    }
    BEV_CHECK(trained.losses.empty() || (trained.losses == losses && trained.norms == norms),
              Internal, "rank {} reports other losses or norms", world.rank());
    trained.losses = losses;
    trained.norms = norms;
  });
  return trained;
}

Difference difference(const LogicalTensors& a, const LogicalTensors& b) {
  Difference largest;
  for (const auto& [name, y] : b) {
    const auto found = a.find(name);
    if (found == a.end() || found->second.size() != y.size()) return {INFINITY, name};
    const std::vector<double>& x = found->second;
    double square = 0, norm = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      const bool of_keys = name.ends_with("qkv.bias") && i >= y.size() / 3 && i < y.size() * 2 / 3;
      if (of_keys) continue;
      square += (x[i] - y[i]) * (x[i] - y[i]);
      norm += y[i] * y[i];
    }
    const double ratio = square > 0 ? std::sqrt(square / norm) : 0;
    // Also where it is not a number.
    if (!(ratio <= largest.ratio)) largest = {ratio, name};
  }
  return largest;
}

}  // namespace bev::test
