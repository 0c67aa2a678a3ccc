#include "device/memory.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

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

Arena::Arena(Device& device, size_t capacity, std::string purpose)
    : purpose_(purpose),
      capacity_(capacity),
      planning_(device.kind() == DeviceKind::Null),
      buffer_(device, planning_ ? 0 : capacity, std::move(purpose)) {}

Tensor Arena::allocate(Shape shape, DType dtype, std::string_view name) {
  const size_t bytes = static_cast<size_t>(shape.elements()) * size_of(dtype);
  const size_t padded = (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  if (planning_) {
    note(name, padded);
    return tensor_over(static_cast<std::byte*>(nullptr), dtype, shape);
  }
  BEV_CHECK(used_ + padded <= capacity_, Internal,
            "the run has left the plan: {} asks for {} bytes for '{}' with {} of {} in use",
            purpose_, padded, name, used_, capacity_);
  std::byte* data = buffer_.data() + used_;
  used_ += padded;
  peak_ = std::max(peak_, used_);
  return tensor_over(data, dtype, shape);
}

void Arena::note(std::string_view name, size_t bytes) {
  live_.push_back({used_, std::string(name), bytes});
  used_ += bytes;
  if (used_ <= peak_) return;
  peak_ = used_;
  at_peak_.resize(shared_);
  for (; shared_ < live_.size(); ++shared_) {
    at_peak_.emplace_back(live_[shared_].name, live_[shared_].bytes);
  }
}

void Arena::release(size_t mark) {
  used_ = mark;
  while (!live_.empty() && live_.back().offset >= mark) live_.pop_back();
  shared_ = std::min(shared_, live_.size());
}

}  // namespace bev
