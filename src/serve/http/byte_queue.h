// Bytes that come at the end and are used from the front.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bev {

// However small the pieces, no more bytes are moved than are used.
class ByteQueue {
 public:
  void add(std::string_view bytes) { bytes_.append(bytes); }

  // What is not used yet; until the next call of another function.
  std::string_view view() const { return std::string_view(bytes_).substr(used_); }
  size_t size() const { return bytes_.size() - used_; }
  bool empty() const { return size() == 0; }

  // REQUIRES: count <= size().
  void use(size_t count) {
    used_ += count;
    if (size() > used_) return;
    bytes_.erase(0, used_);
    used_ = 0;
  }

 private:
  std::string bytes_;
  size_t used_ = 0;  // of them
};

}  // namespace bev
