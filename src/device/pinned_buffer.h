// Host memory with one owner that a device copies from and to while the host goes on.
#pragma once

#include <utility>

#include "device/device.h"

namespace bev {

class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(Device& device, size_t bytes)
      : device_(&device), data_(device.allocate_pinned(bytes)), bytes_(bytes) {}
  PinnedBuffer(PinnedBuffer&& other) noexcept { swap(other); }
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PinnedBuffer() {
    if (data_ != nullptr) device_->release_pinned(data_, bytes_);
  }

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void swap(PinnedBuffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace bev
