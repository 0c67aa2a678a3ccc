#include "bench/step_bench.h"

#include <fstream>

#include "base/clock.h"
#include "data/data_loader.h"
#include "data/mock_dataset.h"
#include "device/autotune.h"
#include "device/gpu_peaks.h"
#include "ops/make_device.h"
#include "train/step_runner.h"
#include "train/training_state.h"

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

// Seconds of each of `count` steps. The first one of an asynchronous device is not counted: it
// starts from an idle device.
std::vector<double> time_steps(Stepper& stepper, Loader& loader, bool asynchronous, int64_t count) {
  std::vector<double> times;
  double last = seconds_now();
  int64_t collected = 0;
  const auto collect = [&] {
    stepper.collect();
    const double now = seconds_now();
    if (!asynchronous || collected > 0) times.push_back(now - last);
    last = now;
    ++collected;
  };
  const int64_t ahead = asynchronous ? 1 : 0;
  for (int64_t i = 0; i < count; ++i) {
    stepper.submit(loader.next());
    while (stepper.in_flight() > ahead) collect();
  }
  while (stepper.in_flight() > 0) collect();
  return times;
}

// Where the device works on its own, it is kept busy by a step before: as in training, it then
// finds its work issued and does not wait for the host.
StepBreakdown trace_step(Assembly& assembly, Stepper& stepper, Loader& loader) {
  if (assembly.device.is_asynchronous()) stepper.submit(loader.next());
  Trace trace(assembly.device);
  assembly.executor.trace_into(&trace);
  stepper.submit(loader.next());
  assembly.executor.trace_into(nullptr);
  while (stepper.in_flight() > 0) stepper.collect();
  return break_down(trace.spans());
}

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
  stepper.rehearse(loader.next());
  result.seconds_to_first_step = seconds_now() - start;
  result.rehearsed = device->rehearsed();
  result.allocated_bytes = device->allocated_bytes();
  if (device->kind() == DeviceKind::Cuda) result.promised_flops = dense_bf16_peak(gpu_name());

  std::vector<Product> products;
  Cost cost{.products = &products};
  const double first = seconds_now();
  assembly.executor.count_into(&cost);
  stepper.step(loader.next());
  assembly.executor.count_into(nullptr);
  result.first_step = seconds_now() - first;
  result.peak_resident_bytes = process_memory("VmHWM");

  const bool asynchronous = device->is_asynchronous();
  std::optional<StepFloor> floor;
  if (options.floor) {
    floor.emplace(*device, config, products);
    Rehearsal rehearsal(*device);  // its products have algorithms of their own
    floor->time_products();
    rehearsal.finish();
  }
  // Between measurements of the floor.
  const int64_t block = asynchronous ? 6 : 1;
  if (asynchronous) {  // until plans are made and clocks have risen
    time_steps(stepper, loader, asynchronous, block);
    if (floor) {
      floor->time_products();
      floor->time_attention();
    }
  }
  std::vector<double> steps, products_alone, attention_alone;
  const double begin = seconds_now();
  while (seconds_now() - begin < options.seconds ||
         static_cast<int64_t>(steps.size()) < options.min_steps) {
    const std::vector<double> more = time_steps(stepper, loader, asynchronous, block);
    steps.insert(steps.end(), more.begin(), more.end());
    if (!floor) continue;
    products_alone.push_back(floor->time_products());
    attention_alone.push_back(floor->time_attention());
  }
  result.step = summarize(std::move(steps));
  if (options.breakdown) result.breakdown = trace_step(assembly, stepper, loader);
  floor.reset();  // its memory
  result.peak = measure_peak(*device);
  if (options.floor) {
    result.floor =
        Floor{.products = summarize(std::move(products_alone)).median,
              .attention = summarize(std::move(attention_alone)).median,
              .optimizer = optimizer_bytes(config, result.plan.parameters) / result.peak.bandwidth};
  }
  return result;
}

}  // namespace bev
