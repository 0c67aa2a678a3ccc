// Micro-batches whose work is issued at once, on devices that can record it: hundreds of kernels
// follow each other without the host, and with smaller gaps.
#pragma once

#include <compare>
#include <map>

#include "device/recording.h"

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

class MicroRecordings {
 public:
  explicit MicroRecordings(Device& device) : device_(device) {}

  // Issues the work: as it is at first, which loads what it needs; then recorded, then replayed.
  // `work` may be called twice, when it turns out that it cannot be recorded.
  void issue(const MicroWork& key, Stream stream, FunctionRef<void()> work);
  int64_t replays() const { return replays_; }

 private:
  struct Known {
    bool was_issued = false;
    Recording recording{};
  };
  // Batches that grow come with new keys; the old ones are then of no use.
  static constexpr size_t kMostKnown = 16;

  Device& device_;
  std::map<MicroWork, Known> known_;
  bool can_record_ = true;  // so far
  int64_t replays_ = 0;
};

}  // namespace bev
