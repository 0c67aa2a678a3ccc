#include "ops/reduce.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <type_traits>

#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/parallel_loops.h"
#include "ops/op_table.h"
#include "tensor/dtype_dispatch.h"

namespace bev::cpu {

namespace {

// The sum is made of this many parts whatever the number of threads, added in order.
constexpr int64_t kParts = 64;

}  // namespace

void squared_norm(Exec& ex, const ops::SquaredNorm& s) {
  visit_cpu(s.x.dtype, "squared_norm", [&]<class T>() {
    const auto* x = reinterpret_cast<const T*>(s.x.data);
    const int64_t count = s.x.shape.elements();
    std::array<double, kParts> parts{};
    const auto sum_parts = [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const int64_t first = count * part / kParts, last = count * (part + 1) / kParts;
        parts[static_cast<size_t>(part)] = kernels_of<T>().sum_of_squares(x + first, last - first);
      }
    };
    threads_of(ex).split(kParts, grain_rows(count / kParts), sum_parts);
    double sum = 0;
    for (const double part : parts) sum += part;
    *reinterpret_cast<double*>(s.out.data) += sum;
  });
}

void weighted_sum(Exec&, const ops::WeightedSum& s) {
  BEV_CHECK(s.x.dtype == DType::f32, Usage, "weighted_sum: the cpu device sums f32, not {}",
            name_of(s.x.dtype));
  const auto* x = reinterpret_cast<const float*>(s.x.data);
  const auto* weight = reinterpret_cast<const float*>(s.weight.data);
  auto* out = reinterpret_cast<double*>(s.out.data);
  double sum = 0, weights = 0;
  for (int64_t i = 0; i < s.x.shape[0]; ++i) {
    sum += static_cast<double>(x[i]) * static_cast<double>(weight[i]);
    weights += static_cast<double>(weight[i]);
  }
  const double scale = s.scale.present() ? *reinterpret_cast<const double*>(s.scale.data) : 1.0;
  out[0] += scale * sum;
  out[1] += scale * weights;
}

namespace {

template <class Bits>
uint64_t hash_of(const std::byte* data, int64_t begin, int64_t end) {
  const auto* x = reinterpret_cast<const Bits*>(data);
  uint64_t sum = 0;
  for (int64_t i = begin; i < end; ++i) sum += hash_of_element(x[i], static_cast<uint64_t>(i));
  return sum;
}

}  // namespace

void hash_bits(Exec& ex, const ops::HashBits& h) {
  const int64_t count = h.x.shape.elements();
  std::atomic<uint64_t> sum{0};
  threads_of(ex).split(kParts, grain_rows(count / kParts), [&](int64_t begin, int64_t end) {
    const int64_t first = count * begin / kParts, last = count * end / kParts;
    switch (size_of(h.x.dtype)) {
      case 1: sum += hash_of<uint8_t>(h.x.data, first, last); break;
      case 2: sum += hash_of<uint16_t>(h.x.data, first, last); break;
      case 4: sum += hash_of<uint32_t>(h.x.data, first, last); break;
      default: sum += hash_of<uint64_t>(h.x.data, first, last); break;
    }
  });
  *reinterpret_cast<int64_t*>(h.out.data) += static_cast<int64_t>(sum.load());
}

namespace {

// The sums of a block stay in the cache while the parts pass.
constexpr int64_t kCombineBlock = 1024;

template <class T>
void combine_run(const ops::Combine& c, int64_t begin, int64_t end) {
  using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
  std::array<Sum, kCombineBlock> sums;
  auto* out = reinterpret_cast<T*>(c.out.data);
  for (int64_t first = begin; first < end; first += kCombineBlock) {
    const int64_t block = std::min(kCombineBlock, end - first);
    for (size_t p = 0; p < c.parts.size(); ++p) {
      const T* in = reinterpret_cast<const T*>(c.parts[p].data) + first;
      // One loop for each op: the compiler turns those into SIMD that hold no decision.
      const auto fold = [&](auto f) {
        for (int64_t i = 0; i < block; ++i) {
          Sum& sum = sums[static_cast<size_t>(i)];
          sum = f(sum, static_cast<Sum>(in[i]));
        }
      };
      if (p == 0) {
        fold([](Sum, Sum value) { return value; });
      } else if (c.op == ReduceOp::Sum) {
        fold([](Sum sum, Sum value) { return sum + value; });
      } else if (c.op == ReduceOp::Max) {
        fold([](Sum sum, Sum value) { return std::max(sum, value); });
      } else {
        fold([](Sum sum, Sum value) { return std::min(sum, value); });
      }
    }
    for (int64_t i = 0; i < block; ++i)
      out[first + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
  }
}

}  // namespace

void combine(Exec& ex, const ops::Combine& c) {
  const int64_t count = c.out.shape.elements();
  visit_floating(c.out.dtype, "combine", [&]<class T>() {
    threads_of(ex).split(count, 16 * kCombineBlock,
                         [&](int64_t begin, int64_t end) { combine_run<T>(c, begin, end); });
  });
}

}  // namespace bev::cpu
