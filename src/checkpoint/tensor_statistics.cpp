#include "checkpoint/tensor_statistics.h"

#include <algorithm>
#include <cmath>

#include "tensor/rectangle_blocks.h"

namespace bev {

namespace {

constexpr int64_t kStatisticsElements = int64_t{4} << 20;

}  // namespace

TensorStatistics statistics_of(const TensorSource& source, const std::string& name,
                               const ElementProgress& progress) {
  TensorStatistics all;
  double squares = 0;
  int64_t finite = 0;
  std::vector<double> values;
  for_each_block(
      whole_of(source.tensors().at(name).shape), kStatisticsElements, [&](const Rectangle& block) {
        values.resize(static_cast<size_t>(block.elements()));
        source.read(name, block, DType::f64, std::as_writable_bytes(std::span(values)).data());
        for (const double value : values) {
          if (!std::isfinite(value)) continue;
          all.smallest = finite == 0 ? value : std::min(all.smallest, value);
          all.largest = finite == 0 ? value : std::max(all.largest, value);
          squares += value * value;
          ++finite;
        }
        all.elements += block.elements();
        if (progress) progress(block.elements());
      });
  all.norm = std::sqrt(squares);
  all.non_finite = all.elements - finite;
  return all;
}

}  // namespace bev
