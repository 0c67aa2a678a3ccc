#include "bench/machine.h"

#include <algorithm>

#include "bench/measure.h"
#include "bench/rig.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/reduce.h"

namespace bev {

namespace {

constexpr int64_t kSide = 1536;                    // its three matrices fill the caches, not more
constexpr int64_t kStream = int64_t{48} << 20;     // elements; far beyond any cache

double best_product(Rig& rig) {
  rig.clear();
  const Tensor a = rig.make({kSide, kSide}, DType::f32);
  const Tensor b = rig.make({kSide, kSide}, DType::f32);
  const Tensor c = rig.make({kSide, kSide}, DType::f32);
  ops::fill(rig.exec(), {.out = a, .value = 0.5});
  ops::fill(rig.exec(), {.out = b, .value = 0.25});
  const Timing t =
      measure([&] { ops::matmul(rig.exec(), {.a = a, .b = b, .out = c}); }, 1.0, 5);
  const double side = static_cast<double>(kSide);
  return 2 * side * side * side / t.best;
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

}  // namespace bev
