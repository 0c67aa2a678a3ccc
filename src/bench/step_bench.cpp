#include "bench/step_bench.h"

#include <fstream>

#include "base/clock.h"
#include "bench/rig.h"
#include "data/loader.h"
#include "data/mock_samples.h"
#include "ops/elementwise.h"
#include "ops/make_device.h"
#include "ops/matmul.h"
#include "train/assembly.h"
#include "train/step.h"

namespace bev {

namespace {

// A field of /proc/self/status in bytes; 0 when it cannot be read.
double process_memory(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":")) return std::stod(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

// The matrix products of one step, timed alone. As in training, weights (and weight gradients) are
// walked through memory of their real total size, while activations stay where they are.
class ProductFloor {
 public:
  ProductFloor(Device& device, std::vector<Product> products, DType dtype)
      : products_(std::move(products)), dtype_(dtype) {
    int64_t largest = 0, weights = 0, activation = 0;
    for (const Product& p : products_) {
      const int64_t a = p.m * p.k, b = p.k * p.n, out = p.m * p.n;
      const int64_t weight = p.ta ? out : b;
      weights += weight;
      largest = std::max(largest, weight);
      activation = std::max({activation, a, p.ta ? b : out});
    }
    activation_elements_ = round_up(activation, 64);
    weight_elements_ = std::min(weights / 3, int64_t{1} << 28) + largest;
    const int64_t total = 2 * activation_elements_ + weight_elements_;
    buffer_ = Buffer(device, static_cast<size_t>(total) * size_of(dtype), "benchmark");
  }

  double run(Exec& ex) {
    double total = 0;
    for (const Product& p : products_) {
      const Shape b_shape = p.tb ? Shape{p.n, p.k} : Shape{p.k, p.n};
      const Tensor a = at(0, p.ta ? Shape{p.k, p.m} : Shape{p.m, p.k});
      const Tensor b = p.ta ? at(activation_elements_, b_shape) : weight(b_shape);
      const Tensor out = p.ta ? weight({p.m, p.n}) : at(activation_elements_, {p.m, p.n});
      const double begin = seconds_now();
      ops::matmul(ex, {.a = a,
                       .b = b,
                       .ta = p.ta ? ops::Transpose::Yes : ops::Transpose::No,
                       .tb = p.tb ? ops::Transpose::Yes : ops::Transpose::No,
                       .out = out,
                       .accumulate = p.accumulate});
      total += seconds_now() - begin;
    }
    return total;
  }

 private:
  Tensor at(int64_t offset, Shape shape) {
    std::byte* data = buffer_.data() + static_cast<size_t>(offset) * size_of(dtype_);
    return tensor_over(data, dtype_, shape);
  }
  Tensor weight(Shape shape) {
    if (next_ + shape.elements() > weight_elements_) next_ = 0;
    const Tensor t = at(2 * activation_elements_ + next_, shape);
    next_ = round_up(next_ + shape.elements(), 64);
    return t;
  }

  std::vector<Product> products_;
  DType dtype_;
  Buffer buffer_;
  int64_t activation_elements_ = 0, weight_elements_ = 0, next_ = 0;
};

}  // namespace

StepBench bench_step(const Config& config, const StepBenchOptions& options) {
  StepBench result;
  const double start = seconds_now();
  result.resident_before = process_memory("VmHWM");
  result.plan = dry_run(config);
  const std::unique_ptr<Device> device = make_device(config.device);
  Assembly assembly(config, *device, result.plan.arenas);
  assembly.initialize();
  Loader loader(std::make_shared<MockSamples>(result.plan.model.vocab, 1),
                Loader::shape_of(config));
  ScheduleSpec schedule{.max_lr = 1e-4, .style = LrDecay::Constant};
  Stepper stepper(assembly, schedule);
  result.seconds_to_first_step = seconds_now() - start;

  std::vector<Product> products;
  Cost cost{.products = &products};
  const double first = seconds_now();
  assembly.executor.count_into(&cost);
  stepper.step(loader.next());
  assembly.executor.count_into(nullptr);
  result.first_step = seconds_now() - first;
  result.peak_resident_bytes = process_memory("VmHWM");

  std::optional<ProductFloor> floor;
  if (options.floor) floor.emplace(*device, products, result.plan.dtype);
  std::vector<double> steps, floors;
  const double begin = seconds_now();
  while (seconds_now() - begin < options.seconds ||
         static_cast<int64_t>(steps.size()) < options.min_steps) {
    const double step_begin = seconds_now();
    stepper.step(loader.next());
    steps.push_back(seconds_now() - step_begin);
    if (floor) {
      Exec ex = assembly.executor.exec();
      floors.push_back(floor->run(ex));
    }
  }
  result.step = summarize(std::move(steps));
  result.peak = measure_peak(*device);
  if (floor) {
    // 16 bytes read (parameter, gradient, two moments), 12 written.
    const double bytes = 28.0 * static_cast<double>(result.plan.parameters);
    result.floor = Floor{.products = summarize(std::move(floors)).median,
                         .optimizer = bytes / result.peak.bandwidth};
  }
  return result;
}

}  // namespace bev
