#include "ops/reduce.h"

#include <algorithm>
#include <cstring>

#include "ops/op_table.h"
#include "ops/reference/element.h"

namespace bev::reference {

void squared_norm(Exec&, const ops::SquaredNorm& s) {
  require_f64("squared_norm", s.x.dtype);
  for (int64_t r = 0; r < row_count(s.x.shape); ++r) {
    const ConstTensor x = row(s.x, r);
    for (int64_t c = 0; c < x.shape[0]; ++c) at(s.out, int64_t{0}) += at(x, c) * at(x, c);
  }
}

void weighted_sum(Exec&, const ops::WeightedSum& s) {
  require_f64("weighted_sum", s.x.dtype);
  const double scale = s.scale.present() ? at(s.scale, int64_t{0}) : 1;
  for (int64_t i = 0; i < s.x.shape[0]; ++i) {
    const double weight = scale * static_cast<double>(element<float>(s.weight, i));
    at(s.out, int64_t{0}) += at(s.x, i) * weight;
    at(s.out, int64_t{1}) += weight;
  }
}

void hash_bits(Exec&, const ops::HashBits& h) {
  const size_t size = size_of(h.x.dtype);
  uint64_t sum = 0;
  for (int64_t i = 0; i < h.x.shape.elements(); ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, h.x.data + static_cast<size_t>(i) * size, size);
    sum += hash_of_element(bits, static_cast<uint64_t>(i));
  }
  element<int64_t>(h.out, int64_t{0}) += static_cast<int64_t>(sum);
}

void combine(Exec&, const ops::Combine& c) {
  require_f64("combine", c.out.dtype);
  const int64_t count = c.out.shape.elements();
  const Tensor out = reshape(c.out, {count});
  for (int64_t i = 0; i < count; ++i) {
    double result = at(reshape(c.parts.front(), {count}), i);
    for (const ConstTensor& part : c.parts.subspan(1)) {
      const double value = at(reshape(part, {count}), i);
      switch (c.op) {
        case ReduceOp::Sum: result += value; break;
        case ReduceOp::Max: result = std::max(result, value); break;
        case ReduceOp::Min: result = std::min(result, value); break;
      }
    }
    at(out, i) = result;
  }
}

}  // namespace bev::reference
