// A stack of tensors inside one Buffer.
//
// On the null device an Arena has no memory and no limit; its peak() is the plan. A real Arena is
// then built with exactly that capacity, and asking for more is an Internal error: the plan and the
// run have diverged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/buffer.h"
#include "tensor/tensor.h"

namespace bev {

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
