// Which dataset, and which of its samples, stands where in a blend of Megatron-LM's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "config/choices.h"
#include "data/batch.h"

namespace bev {

struct MegatronBlendIndex {
  std::vector<int16_t> dataset;
  std::vector<int64_t> sample;
  bool operator==(const MegatronBlendIndex&) const = default;
};

// Weights over their sum, added in NumPy's order.
std::vector<double> normalized_weights(std::span<const double> weights);

// At each place the dataset that lags furthest behind its share, the first of equals. REQUIRES: as
// many weights as fit 16 bits, normalized.
MegatronBlendIndex build_megatron_blend(std::span<const double> weights, int64_t size);

// The same for datasets that are used up: each sample of each exactly once.
MegatronBlendIndex build_exhaustive_blend(std::span<const int64_t> sizes);

// Samples to ask of a dataset for its part of `size`. A surplus covers what the blending may take
// beyond the share; the blend of the classic Megatron is as long as all that was built.
struct BlendRequest {
  int64_t used = 0;   // what the length of the blend counts
  int64_t built = 0;  // with the surplus
};
BlendRequest request_of(double weight, int64_t size, Compat compat);

struct MegatronBlend {
  std::vector<std::shared_ptr<const CountedDataset>> parts;
  std::vector<double> weights;  // as the index was made from them
  MegatronBlendIndex index;

  int64_t size() const { return static_cast<int64_t>(index.dataset.size()); }
};

// A blend of `count` datasets, each made by `make` for a number of samples (none: one epoch).
// Without weights they are blended by size, at most one epoch of each; without a number wanted, all
// of it.
MegatronBlend blend_megatron(
    size_t count, std::span<const double> weights, std::optional<int64_t> wanted, Compat compat,
    FunctionRef<std::shared_ptr<const CountedDataset>(size_t part, std::optional<int64_t> wanted)>
        make);

}  // namespace bev
