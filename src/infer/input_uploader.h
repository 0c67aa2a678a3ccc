// Small inputs of a step to the device in one copy, in the order of its stream, while the host goes
// on.
#pragma once

#include <array>
#include <cstring>
#include <span>

#include "device/memory.h"

namespace bev {

// The same puts give the same addresses on the device, so that CUDA graphs find their inputs.
class InputUploader {
 public:
  // `bytes`: as peak() of a dry run says.
  InputUploader(Device& device, size_t bytes) : device_(device), arena_(device, bytes, "batches") {
    if (device.kind() == DeviceKind::Null) return;
    for (Stage& stage : stages_) stage.pinned = PinnedBuffer(device, bytes);
  }

  // What was put before is no longer needed by work that is issued from now on.
  void begin() {
    arena_.release(0);
    next_ = (next_ + 1) % stages_.size();
    device_.finish(stages_[next_].sent);
  }
  // The values on the device, once sent.
  template <class T>
  Tensor put(std::span<const T> values, const Shape& shape, const char* name) {
    const size_t offset = arena_.mark();
    const Tensor t = arena_.allocate(shape, DTypeOf<T>::value, name);
    if (t.data != nullptr)
      std::memcpy(stages_[next_].pinned.data() + offset, values.data(), values.size_bytes());
    first_ = offset == 0 ? t.data : first_;
    return t;
  }
  // In the order of the stream.
  void send(Stream stream) {
    if (arena_.mark() == 0 || first_ == nullptr) return;
    device_.upload_on(stream, stages_[next_].pinned.data(), first_, arena_.mark());
    stages_[next_].sent = stream.record();
  }
  size_t peak() const { return arena_.peak(); }

 private:
  // So many steps may be on their way.
  struct Stage {
    PinnedBuffer pinned{};
    Event sent{};
  };

  Device& device_;
  Arena arena_;
  std::array<Stage, 3> stages_{};
  size_t next_ = 0;
  std::byte* first_ = nullptr;
};

}  // namespace bev
