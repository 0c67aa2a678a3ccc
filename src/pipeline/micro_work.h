// What tells the recorded work of one micro-batch from that of another.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace bev {

// All that the work of a micro-batch depends on and that differs between micro-batches: equal keys,
// equal kernels with equal arguments.
struct MicroWork {
  const std::byte* tokens;  // which of the memories for tokens
  const std::byte* first_visible;
  int64_t sequences, length;
  double grad_scale;
  bool is_first;  // of the step: gradients are begun instead of added to

  std::partial_ordering operator<=>(const MicroWork&) const = default;
};

}  // namespace bev
