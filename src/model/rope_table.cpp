#include "model/rope_table.h"

#include <cmath>

#include "tensor/dtype_dispatch.h"

namespace bev {

namespace {

// Llama 3.1's scaling: slow frequencies are divided by `factor`, fast ones are kept, those between
// are interpolated.
double scaled(double frequency, const RopeSpec& spec) {
  constexpr double kTwoPi = 6.283185307179586476925;
  const double original = static_cast<double>(spec.original_positions);
  const double turns = original * frequency / kTwoPi;  // over the original context
  if (turns < spec.low) return frequency / spec.factor;
  if (turns > spec.high) return frequency;
  const double smooth = (turns - spec.low) / (spec.high - spec.low);
  return (1 - smooth) * frequency / spec.factor + smooth * frequency;
}

template <class T>
void fill(const std::vector<double>& frequencies, int64_t positions, std::vector<T>& cosine,
          std::vector<T>& sine) {
  for (int64_t position = 0; position < positions; ++position) {
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(position) * frequency;
      cosine.push_back(static_cast<T>(std::cos(angle)));
      sine.push_back(static_cast<T>(std::sin(angle)));
    }
  }
}

}  // namespace

std::vector<double> rope_frequencies(const RopeSpec& spec) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < spec.dim / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(spec.dim);
    const double frequency = std::pow(spec.base, exponent);
    frequencies.push_back(spec.scaling == RopeScaling::Llama3 ? scaled(frequency, spec)
                                                              : frequency);
  }
  return frequencies;
}

RopeTable::RopeTable(Device& device, const RopeSpec& spec, DType dtype) : spec_(spec) {
  const Shape shape{spec.positions, spec.dim / 2};
  const DType type = accumulation_of(dtype);
  const size_t bytes = static_cast<size_t>(shape.elements()) * size_of(type);
  buffer_ = Buffer(device, 2 * bytes, "constants");
  std::byte* second = buffer_.data() != nullptr ? buffer_.data() + bytes : nullptr;
  cosine = tensor_over(buffer_.data(), type, shape);
  sine = tensor_over(second, type, shape);
  if (buffer_.data() == nullptr) return;

  const std::vector<double> frequencies = rope_frequencies(spec);
  visit_floating(type, "rope table", [&]<class T>() {
    std::vector<T> cosines, sines;
    if constexpr (std::is_floating_point_v<T>) {
      fill(frequencies, spec.positions, cosines, sines);
      device.upload(cosines.data(), buffer_.data(), bytes);
      device.upload(sines.data(), second, bytes);
    }
  });
}

}  // namespace bev
