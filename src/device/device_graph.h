// Work of a stream that was recorded once and is issued again at once: the same kernels, with the
// same arguments, on the same memory.
#pragma once

#include <utility>

#include "base/function_ref.h"
#include "device/device.h"

namespace bev {

// Has one owner; the device must outlive it.
class Recording {
 public:
  Recording() = default;  // absent
  // What `issue` issues on the stream is recorded and not done. Absent where that cannot be
  // recorded, for whatever reason: `issue` itself may have thrown.
  static Recording of(Device& device, Stream stream, FunctionRef<void()> issue);
  Recording(Recording&& other) noexcept { swap(other); }
  Recording& operator=(Recording&& other) noexcept {
    Recording taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~Recording() {
    if (device_ != nullptr) device_->release_recording(handle_);
  }

  bool present() const { return device_ != nullptr; }
  void replay(Stream stream) const { device_->replay(stream.index(), handle_); }

 private:
  Recording(Device& device, uint64_t handle) : device_(&device), handle_(handle) {}
  void swap(Recording& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
  }

  Device* device_ = nullptr;
  uint64_t handle_ = 0;
};

}  // namespace bev
