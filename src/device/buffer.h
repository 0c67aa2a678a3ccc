// Memory with one owner.
#pragma once

#include <cstddef>
#include <string>

#include "device/device.h"

namespace bev {

class Buffer {
 public:
  Buffer() = default;
  // The purpose appears in memory reports. The content starts as zeros.
  Buffer(Device& device, size_t bytes, std::string purpose);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  std::string purpose_;
};

}  // namespace bev
