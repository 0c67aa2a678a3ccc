// What can be said of a tensor in a few numbers.
#pragma once

#include <cstdint>
#include <functional>

#include "checkpoint/tensor_source.h"

namespace bev {

struct TensorStatistics {
  int64_t elements = 0;
  int64_t non_finite = 0;            // infinite or not a number
  double norm = 0;                   // L2, of the finite elements
  double smallest = 0, largest = 0;  // of the finite elements; 0 where there are none
};

// Hears of elements that were read.
using ElementProgress = std::function<void(int64_t elements)>;

// In float64 and some MiB of memory, whatever the tensor's size.
TensorStatistics statistics_of(const TensorSource& source, const std::string& name,
                               const ElementProgress& progress = {});

}  // namespace bev
