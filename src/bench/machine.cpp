#include "bench/machine.h"

#include <algorithm>

#include "bench/measure.h"
#include "bench/rig.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/reduce.h"

namespace bev {

namespace {

constexpr int64_t kSide = 1536;                 // its three matrices fill the caches, not more
constexpr int64_t kStream = int64_t{48} << 20;  // elements; far beyond any cache

double product_rate(Rig& rig, int64_t m, int64_t n, int64_t k, double seconds = 0.4) {
  rig.clear();
  const Tensor a = rig.make({m, k}, DType::f32);
  const Tensor b = rig.make({k, n}, DType::f32);
  const Tensor c = rig.make({m, n}, DType::f32);
  ops::fill(rig.exec(), {.out = a, .value = 0.5});
  ops::fill(rig.exec(), {.out = b, .value = 0.25});
  const Timing t =
      measure([&] { ops::matmul(rig.exec(), {.a = a, .b = b, .out = c}); }, seconds, 5);
  return 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / t.best;
}

// Which shape suits the caches best differs between machines.
double best_product(Rig& rig) {
  return std::max({product_rate(rig, kSide, kSide, kSide), product_rate(rig, 256, 3072, 768),
                   product_rate(rig, 768, 768, 768)});
}

// The better of reading alone and copying.
double best_stream(Rig& rig) {
  rig.clear();
  const Tensor from = rig.make({kStream}, DType::f32);
  const Tensor to = rig.make({kStream}, DType::f32);
  const Tensor sum = rig.make({1}, DType::f64);
  ops::fill(rig.exec(), {.out = from, .value = 1});
  ops::fill(rig.exec(), {.out = sum, .value = 0});
  const double bytes = static_cast<double>(bytes_of(from));
  const Timing read =
      measure([&] { ops::squared_norm(rig.exec(), {.x = from, .out = sum}); }, 0.5, 5);
  const Timing copy = measure([&] { ops::copy(rig.exec(), {.in = from, .out = to}); }, 0.5, 5);
  return std::max(bytes / read.best, 2 * bytes / copy.best);
}

}  // namespace

MachinePeak measure_peak(Device& device) {
  Rig rig(device, static_cast<size_t>(kStream) * 2 * sizeof(float) + (size_t{1} << 20));
  return {.flops = best_product(rig), .bandwidth = best_stream(rig)};
}

double measure_product_peak(Device& device) {
  Rig rig(device, size_t{8} << 20);
  return product_rate(rig, 768, 768, 768, 0.2);
}

}  // namespace bev
