#include "bench/machine_peak.h"

#include <algorithm>
#include <functional>

#include "bench/measure.h"
#include "device/memory.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/reduce.h"

namespace bev {

namespace {

struct GemmSize {
  int64_t m, n, k;
  double flops() const {
    return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

// Which shape suits the caches of a processor best differs between machines; the matrices of the
// first fill them, not more. On a GPU all of them are busy with the last.
constexpr GemmSize kCpuGemms[] = {{1536, 1536, 1536}, {256, 3072, 768}, {768, 768, 768}};
constexpr GemmSize kGpuGemm{8192, 8192, 8192};

// Elements; far beyond any cache.
int64_t stream_elements(const Device& device) {
  return int64_t{device.kind() == DeviceKind::Cuda ? 128 : 48} << 20;
}

// Makes operands and returns work on them, which stays valid until the rig is cleared.
using Work = std::function<std::function<void()>(OpRig&)>;

double best_seconds(Device& device, const Work& work, double seconds) {
  OpRig rig(device, rig_sizes(device, [&](OpRig& dry_run) { work(dry_run)(); }));
  return measure_on(device, work(rig), seconds, 5).best;
}

double gemm_rate(Device& device, const GemmSize& size, DType dtype, double seconds) {
  const Work work = [&](OpRig& rig) {
    const Tensor a = rig.make_varied({size.m, size.k}, dtype);
    const Tensor b = rig.make_varied({size.k, size.n}, dtype);
    const Tensor c = rig.make({size.m, size.n}, dtype);
    return [&rig, a, b, c] { ops::matmul(rig.exec(), {.a = a, .b = b, .out = c}); };
  };
  return size.flops() / best_seconds(device, work, seconds);
}

double best_gemm(Device& device) {
  if (device.kind() == DeviceKind::Cuda) return gemm_rate(device, kGpuGemm, DType::bf16, 0.5);
  double best = 0;
  for (const GemmSize& size : kCpuGemms) {
    best = std::max(best, gemm_rate(device, size, DType::f32, 0.4));
  }
  return best;
}

double copy_rate(Device& device) {
  const int64_t elements = stream_elements(device);
  const Work work = [&](OpRig& rig) {
    const Tensor from = rig.make_varied({elements}, DType::f32);
    const Tensor to = rig.make({elements}, DType::f32);
    return [&rig, from, to] { ops::copy(rig.exec(), {.in = from, .out = to}); };
  };
  return 2 * 4 * static_cast<double>(elements) / best_seconds(device, work, 0.5);
}

double read_rate(Device& device) {
  const int64_t elements = stream_elements(device);
  const Work work = [&](OpRig& rig) {
    const Tensor from = rig.make_varied({elements}, DType::f32);
    const Tensor sum = rig.make({1}, DType::f64);
    ops::fill(rig.exec(), {.out = sum, .value = 0});
    return [&rig, from, sum] { ops::squared_norm(rig.exec(), {.x = from, .out = sum}); };
  };
  return 4 * static_cast<double>(elements) / best_seconds(device, work, 0.5);
}

}  // namespace

double measure_bandwidth(Device& device) {
  const double copied = copy_rate(device);
  return device.kind() == DeviceKind::Cuda ? copied : std::max(copied, read_rate(device));
}

MachinePeak measure_peak(Device& device) {
  return {.flops = best_gemm(device), .bandwidth = measure_bandwidth(device)};
}

double measure_gemm_peak(Device& device) {
  return gemm_rate(device, {768, 768, 768}, DType::f32, 0.2);
}

TransferRates measure_transfers(Device& device) {
  constexpr size_t kBytes = size_t{256} << 20;
  const PinnedBuffer host(device, kBytes);
  const Buffer memory(device, kBytes, "benchmark");
  const Stream stream = device.compute_stream();
  const auto rate = [&](const std::function<void()>& copy) {
    return static_cast<double>(kBytes) / measure_on(device, copy, 0.3, 5).best;
  };
  return {
      .to_device = rate([&] { device.upload_on(stream, host.data(), memory.data(), kBytes); }),
      .from_device = rate([&] { device.download_on(stream, memory.data(), host.data(), kBytes); })};
}

}  // namespace bev
