#include "bench/step_bench.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "base/clock.h"
#include "data/data_loader.h"
#include "data/mock_dataset.h"
#include "device/device.h"
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

// Seconds of each of `count` steps. On an asynchronous device, leaves out the first step, which
// starts from an idle device.
std::vector<double> time_steps(StepRunner& stepper, DataLoader& loader, bool asynchronous,
                               int64_t count) {
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

// On an asynchronous device, a step before keeps the device busy: as in training, the traced work
// is issued in time and the device does not wait for the host.
StepBreakdown trace_step(TrainingState& state, StepRunner& stepper, DataLoader& loader) {
  if (state.device.is_asynchronous()) stepper.submit(loader.next());
  Trace trace(state.device);
  state.executor.trace_into(&trace);
  stepper.submit(loader.next());
  state.executor.trace_into(nullptr);
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
  TrainingState state(config, *device, result.plan.arenas);
  state.initialize();
  DataLoader loader(std::make_shared<MockDataset>(result.plan.model.vocab, 1),
                    DataLoader::shape_of(config, state.spec.batch));
  LrSchedule schedule{.max_lr = 1e-4, .style = LrDecay::Constant};
  StepRunner stepper(state, schedule);
  stepper.autotune(loader.next());
  result.seconds_to_first_step = seconds_now() - start;
  result.autotune = device->autotune_summary();
  result.allocated_bytes = device->allocated_bytes();
  if (device->kind() == DeviceKind::Cuda) result.promised_flops = dense_bf16_peak(gpu_name());

  CostLog costs;
  const double first = seconds_now();
  state.executor.count_into(&costs);
  stepper.step(loader.next());
  state.executor.count_into(nullptr);
  result.first_step = seconds_now() - first;
  result.peak_resident_bytes = process_memory("VmHWM");

  const bool asynchronous = device->is_asynchronous();
  std::optional<StepFloor> floor;
  if (options.floor) {
    floor.emplace(*device, config, gemms_of(costs.records()));
    AutotuneScope autotune(*device);  // the floor's GEMMs are tuned separately
    floor->time_gemms();
    autotune.finish();
  }
  // Steps between two measurements of the floor.
  const int64_t block = asynchronous ? 6 : 1;
  if (asynchronous) {  // warm-up: makes plans, raises the GPU clocks
    time_steps(stepper, loader, asynchronous, block);
    if (floor) {
      floor->time_gemms();
      floor->time_attention();
    }
  }
  std::vector<double> steps, gemms_alone, attention_alone;
  const double begin = seconds_now();
  while (seconds_now() - begin < options.seconds ||
         static_cast<int64_t>(steps.size()) < options.min_steps) {
    const std::vector<double> more = time_steps(stepper, loader, asynchronous, block);
    steps.insert(steps.end(), more.begin(), more.end());
    if (!floor) continue;
    gemms_alone.push_back(floor->time_gemms());
    attention_alone.push_back(floor->time_attention());
  }
  result.step = summarize(std::move(steps));
  if (options.breakdown) result.breakdown = trace_step(state, stepper, loader);
  floor.reset();  // frees its memory
  result.peak = measure_peak(*device);
  if (options.floor) {
    result.floor =
        Floor{.gemms = summarize(std::move(gemms_alone)).median,
              .attention = summarize(std::move(attention_alone)).median,
              .optimizer = optimizer_bytes(config, result.plan.parameters) / result.peak.bandwidth};
  }
  return result;
}

namespace {

struct OpClass {
  std::string_view op, name;
};

// The classes appear in this order.
constexpr std::array kClasses{
    OpClass{"matmul", "products"},
    OpClass{"attention", "attention"},
    OpClass{"attention_backward", "attention"},
    OpClass{"relative_bias", "attention"},
    OpClass{"relative_bias_backward", "attention"},
    OpClass{"rope", "rope"},
    OpClass{"norm", "norm"},
    OpClass{"residual_norm", "norm"},
    OpClass{"norm_backward", "norm"},
    OpClass{"residual_add", "residual and dropout"},
    OpClass{"dropout", "residual and dropout"},
    OpClass{"activate", "activation"},
    OpClass{"activate_backward", "activation"},
    OpClass{"softmax_stats", "loss"},
    OpClass{"cross_entropy", "loss"},
    OpClass{"scale", "loss"},
    OpClass{"top_k_hits", "loss"},
    OpClass{"embedding", "embedding"},
    OpClass{"embedding_backward", "embedding"},
    OpClass{"loss_factors", "loss"},
    OpClass{"decide_update", "optimizer"},
    OpClass{"adamw", "optimizer"},
    OpClass{"sgd", "optimizer"},
    OpClass{"lamb_moments", "optimizer"},
    OpClass{"sum_segments", "optimizer"},
    OpClass{"lamb_ratios", "optimizer"},
    OpClass{"lamb_update", "optimizer"},
    OpClass{"squared_norm", "reductions"},
    OpClass{"weighted_sum", "reductions"},
    OpClass{"hash_bits", "reductions"},
    OpClass{"fill", "fills and copies"},
    OpClass{"copy", "fills and copies"},
};
constexpr std::string_view kOther = "other";

void add(ClassTime& to, const OpSpan& span) {
  auto found = std::find_if(to.ops.begin(), to.ops.end(),
                            [&](const OpTime& time) { return time.op == span.op; });
  if (found == to.ops.end()) found = to.ops.insert(to.ops.end(), {.op = span.op});
  ++found->calls;
  found->seconds += span.end - span.begin;
}

}  // namespace

int64_t ClassTime::calls() const {
  int64_t sum = 0;
  for (const OpTime& time : ops) sum += time.calls;
  return sum;
}

double ClassTime::seconds() const {
  double sum = 0;
  for (const OpTime& time : ops) sum += time.seconds;
  return sum;
}

double StepBreakdown::gaps() const {
  double left = total;
  for (const ClassTime& c : classes) left -= c.seconds();
  return left;
}

std::string_view class_of(std::string_view op) {
  const auto found = std::find_if(kClasses.begin(), kClasses.end(),
                                  [&](const OpClass& entry) { return entry.op == op; });
  return found == kClasses.end() ? kOther : found->name;
}

StepBreakdown break_down(std::span<const OpSpan> spans) {
  StepBreakdown result;
  if (spans.empty()) return result;
  result.total = spans.back().end - spans.front().begin;
  for (const OpClass& entry : kClasses) {
    if (result.classes.empty() || result.classes.back().name != entry.name)
      result.classes.push_back({.name = entry.name, .ops = {}});
  }
  result.classes.push_back({.name = kOther, .ops = {}});
  for (const OpSpan& span : spans) {
    const std::string_view name = class_of(span.op);
    add(*std::find_if(result.classes.begin(), result.classes.end(),
                      [&](const ClassTime& c) { return c.name == name; }),
        span);
  }
  std::erase_if(result.classes, [](const ClassTime& c) { return c.ops.empty(); });
  for (ClassTime& c : result.classes) {
    std::stable_sort(c.ops.begin(), c.ops.end(),
                     [](const OpTime& a, const OpTime& b) { return a.seconds > b.seconds; });
  }
  return result;
}

}  // namespace bev
