#include "device/buffer.h"

#include <utility>

namespace bev {

Buffer::Buffer(Device& device, size_t bytes, std::string purpose)
    : device_(&device),
      data_(device.allocate(bytes, purpose)),
      bytes_(bytes),
      purpose_(std::move(purpose)) {}

Buffer::Buffer(Buffer&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      purpose_(std::move(other.purpose_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(purpose_, other.purpose_);
  return *this;
}

Buffer::~Buffer() {
  if (device_ != nullptr) device_->release(data_, bytes_, purpose_);
}

}  // namespace bev
