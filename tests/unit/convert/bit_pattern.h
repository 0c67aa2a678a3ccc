// Weights whose bits tell where they belong: any value that lands in a wrong place is noticed, and
// so is any arithmetic done to it.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "convert/weight_source.h"

namespace bev::test {

inline uint64_t name_bits(const std::string& name) {
  uint64_t x = 1469598103934665603u;
  for (const char c : name) x = (x ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return x;
}

// Element `index` of the parameter with these bits, in a floating type of any size. NaNs with
// payloads occur.
inline void put_pattern(uint64_t name, int64_t index, size_t size, std::byte* to) {
  uint64_t x = name + static_cast<uint64_t>(index) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  x ^= x >> 31;
  std::memcpy(to, &x, size);
}

inline std::vector<std::byte> pattern_bytes(const std::string& name, int64_t elements,
                                            size_t size) {
  std::vector<std::byte> bytes(static_cast<size_t>(elements) * size);
  for (int64_t i = 0; i < elements; ++i)
    put_pattern(name_bits(name), i, size, bytes.data() + static_cast<size_t>(i) * size);
  return bytes;
}

// A model of such weights.
class PatternWeights final : public WeightSource {
 public:
  explicit PatternWeights(DType dtype) : dtype_(dtype) {}

  DType dtype_of(const ParamSpec&) override { return dtype_; }
  void read(const ParamSpec& spec, const Rectangle& where, DType, std::byte* to) override {
    const int64_t columns = whole_of(spec.shape).columns;
    const uint64_t name = name_bits(spec.name);
    for (int64_t row = where.row; row < where.row_end(); ++row) {
      for (int64_t column = where.column; column < where.column_end(); ++column) {
        put_pattern(name, row * columns + column, size_of(dtype_), to);
        to += size_of(dtype_);
      }
    }
  }
  void check_all_used() override {}

 private:
  DType dtype_;
};

}  // namespace bev::test
