// Extents of up to five dimensions, held inline.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace bev {

constexpr int kMaxRank = 5;

class Shape {
 public:
  Shape() = default;
  // REQUIRES: at most kMaxRank extents, none negative.
  Shape(std::initializer_list<int64_t> extents);

  int rank() const { return rank_; }
  int64_t operator[](int dim) const { return extents_[static_cast<size_t>(dim)]; }
  void set(int dim, int64_t extent) { extents_[static_cast<size_t>(dim)] = extent; }
  int64_t elements() const;
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

// "[2, 64, 768]".
std::string to_string(const Shape& shape);

}  // namespace bev
