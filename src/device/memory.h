// Device memory: buffers with one owner, pinned host buffers, and arenas (stacks inside a buffer).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device.h"
#include "tensor/tensor.h"

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

// Host memory with one owner that a device copies from and to while the host goes on.

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

// A stack of tensors inside one Buffer.
//
// On the null device an Arena has no memory and no limit; its peak() is the plan. A real Arena is
// then built with exactly that capacity, and asking for more is an Internal error: the plan and the
// run have diverged.

constexpr size_t kArenaAlignment = 256;

class Arena {
 public:
  Arena(Device& device, size_t capacity, std::string purpose);
  Arena(Arena&&) = default;

  // The content is undefined. Does not allocate memory.
  Tensor allocate(Shape shape, DType dtype, std::string_view name);

  size_t mark() const { return used_; }
  void release(size_t mark);  // everything allocated since mark() returned this value
  size_t peak() const { return peak_; }

  // Who was alive at the peak, in order of allocation. Kept on the null device only.
  const std::vector<std::pair<std::string, size_t>>& peak_contents() const { return at_peak_; }

 private:
  struct Entry {
    size_t offset;
    std::string name;
    size_t bytes;
  };
  void note(std::string_view name, size_t bytes);

  std::string purpose_;
  size_t capacity_;
  bool planning_;
  Buffer buffer_;
  size_t used_ = 0, peak_ = 0;
  std::vector<Entry> live_;
  std::vector<std::pair<std::string, size_t>> at_peak_;
  size_t shared_ = 0;  // leading entries that live_ and at_peak_ have in common
};

// Returns everything allocated since construction.
// REQUIRES: no other stream still uses those tensors when the scope ends.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.release(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  size_t mark_;
};

}  // namespace bev
