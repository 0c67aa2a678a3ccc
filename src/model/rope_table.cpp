#include "model/rope_table.h"

#include <cmath>

#include "tensor/dtype_dispatch.h"

namespace bev {

namespace {

// Llama 3.1's stretching: slow waves by `factor`, fast ones not at all, in between a blend.
double scaled(double frequency, const ModelConfig& m) {
  constexpr double kTwoPi = 6.283185307179586476925;
  const double original = static_cast<double>(m.rope_original_positions);
  const double turns = original * frequency / kTwoPi;  // over the original context
  if (turns < m.rope_low) return frequency / m.rope_factor;
  if (turns > m.rope_high) return frequency;
  const double smooth = (turns - m.rope_low) / (m.rope_high - m.rope_low);
  return (1 - smooth) * frequency / m.rope_factor + smooth * frequency;
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

std::vector<double> rope_frequencies(const ModelConfig& model, int64_t rotary_dim) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < rotary_dim / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim);
    const double frequency = std::pow(model.rope_base, exponent);
    frequencies.push_back(model.rope_scaling == RopeScaling::Llama3 ? scaled(frequency, model)
                                                                    : frequency);
  }
  return frequencies;
}

RopeTable::RopeTable(Device& device, const ModelSpec& b, DType dtype) {
  const int64_t half = b.shape.rotary_dim / 2;
  if (half == 0) return;
  const Shape shape{b.shape.positions, half};
  const DType type = accumulation_of(dtype);
  const size_t bytes = static_cast<size_t>(shape.elements()) * size_of(type);
  buffer_ = Buffer(device, 2 * bytes, "constants");
  std::byte* second = buffer_.data() != nullptr ? buffer_.data() + bytes : nullptr;
  cosine = tensor_over(buffer_.data(), type, shape);
  sine = tensor_over(second, type, shape);
  if (buffer_.data() == nullptr) return;

  const std::vector<double> frequencies = rope_frequencies(b.model(), b.shape.rotary_dim);
  visit_floating(type, "rope table", [&]<class T>() {
    std::vector<T> cosines, sines;
    if constexpr (std::is_floating_point_v<T>) {
      fill(frequencies, b.shape.positions, cosines, sines);
      device.upload(cosines.data(), buffer_.data(), bytes);
      device.upload(sines.data(), second, bytes);
    }
  });
}

}  // namespace bev
