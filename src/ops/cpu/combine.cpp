#include "ops/combine.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/parallel_loops.h"
#include "ops/op_table.h"
#include "tensor/dtype_dispatch.h"

namespace bev::cpu {

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
