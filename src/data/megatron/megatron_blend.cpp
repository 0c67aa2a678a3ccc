#include "data/megatron/megatron_blend.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/integer.h"

namespace bev {

namespace {

constexpr double kSurplus = 0.005;

// NumPy adds eight interleaved sums, and halves of long lists apart.
double numpy_sum(std::span<const double> values) {
  constexpr size_t kLanes = 8, kBlock = 128;
  const size_t count = values.size();
  if (count < kLanes) return std::accumulate(values.begin(), values.end(), 0.0);
  if (count > kBlock) {
    const size_t half = count / 2 - count / 2 % kLanes;
    return numpy_sum(values.first(half)) + numpy_sum(values.subspan(half));
  }
  double lane[kLanes] = {};
  const size_t whole = count - count % kLanes;
  for (size_t i = 0; i < whole; ++i) lane[i % kLanes] += values[i];
  const double sum =
      ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
  return std::accumulate(values.begin() + static_cast<ptrdiff_t>(whole), values.end(), sum);
}

class Blender {
 public:
  Blender(std::span<const double> weights, int64_t size)
      : weights_(weights), counts_(weights.size(), 0) {
    index_.dataset.reserve(static_cast<size_t>(size));
    index_.sample.reserve(static_cast<size_t>(size));
  }

  // The next place. With sizes, a dataset that is used up is passed over.
  void add(std::span<const int64_t> sizes) {
    const double place = std::max(static_cast<double>(index_.dataset.size()), 1.0);
    size_t chosen = weights_.size();
    double largest = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (!sizes.empty() && counts_[i] == sizes[i]) continue;
      const double lag = weights_[i] * place - static_cast<double>(counts_[i]);
      if (chosen < weights_.size() && !(lag > largest)) continue;
      chosen = i;
      largest = lag;
    }
    index_.dataset.push_back(static_cast<int16_t>(chosen));
    index_.sample.push_back(counts_[chosen]++);
  }

  MegatronBlendIndex take() { return std::move(index_); }

 private:
  std::span<const double> weights_;
  std::vector<int64_t> counts_;
  MegatronBlendIndex index_;
};

}  // namespace

std::vector<double> normalized_weights(std::span<const double> weights) {
  const double sum = numpy_sum(weights);
  std::vector<double> normalized(weights.begin(), weights.end());
  for (double& weight : normalized) weight /= sum;
  return normalized;
}

MegatronBlendIndex build_megatron_blend(std::span<const double> weights, int64_t size) {
  Blender blender(weights, size);
  for (int64_t i = 0; i < size; ++i) blender.add({});
  return blender.take();
}

MegatronBlendIndex build_exhaustive_blend(std::span<const int64_t> sizes) {
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  std::vector<double> weights;
  for (const int64_t size : sizes)
    weights.push_back(static_cast<double>(size) / static_cast<double>(total));
  Blender blender(weights, total);
  for (int64_t i = 0; i < total; ++i) blender.add(sizes);
  return blender.take();
}

BlendRequest request_of(double weight, int64_t size, Compat compat) {
  const double share = static_cast<double>(size) * weight;
  if (compat == Compat::Classic) {
    const auto built = static_cast<int64_t>(std::ceil(share * (1 + kSurplus)));
    return {.used = built, .built = built};
  }
  const double used = std::ceil(share);
  return {.used = static_cast<int64_t>(used),
          .built = static_cast<int64_t>(std::ceil(used * (1 + kSurplus)))};
}

MegatronBlend blend_megatron(
    size_t count, std::span<const double> weights, std::optional<int64_t> wanted, Compat compat,
    FunctionRef<std::shared_ptr<const CountedDataset>(size_t part, std::optional<int64_t> wanted)>
        make) {
  MegatronBlend blend;
  if (!weights.empty()) {
    const std::vector<double> shares = normalized_weights(weights);
    int64_t size = 0;
    for (size_t i = 0; i < count; ++i) {
      const BlendRequest request = request_of(shares[i], wanted.value_or(0), compat);
      blend.parts.push_back(make(i, request.built));
      size += request.used;
    }
    blend.weights = normalized_weights(shares);  // twice, as there
    blend.index = build_megatron_blend(blend.weights, size);
    return blend;
  }
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < count; ++i) {
    blend.parts.push_back(make(i, std::nullopt));
    sizes.push_back(blend.parts.back()->count());
  }
  blend.weights.assign(sizes.begin(), sizes.end());
  if (!wanted) {
    blend.index = build_exhaustive_blend(sizes);
    return blend;
  }
  const int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  blend.weights = normalized_weights(blend.weights);
  blend.index = build_megatron_blend(blend.weights, std::min(all, *wanted));
  return blend;
}

}  // namespace bev
