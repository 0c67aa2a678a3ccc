#include "infer/sampling.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/philox.h"

namespace bev {

namespace {

double uniform(uint64_t seed, int64_t sample, int64_t position) {
  const PhiloxBlock block = philox(mix_key(seed, "sampling"), static_cast<uint64_t>(sample),
                                   static_cast<uint64_t>(position));
  const uint64_t bits = (uint64_t{block[0]} << 32 | block[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace

int32_t Sampler::choose(std::span<const float> logits, int64_t sample, int64_t position) {
  candidates_.clear();
  for (size_t id = 0; id < logits.size(); ++id)
    if (std::isfinite(logits[id]))
      candidates_.emplace_back(static_cast<double>(logits[id]), static_cast<int32_t>(id));
  BEV_CHECK(!candidates_.empty(), Numerics,
            "the model gives no finite probability to any token; its weights are damaged");
  // Equal logits: the smaller id first, so that the order is one.
  const auto likelier = [](const auto& a, const auto& b) {
    return a.first > b.first || (a.first == b.first && a.second < b.second);
  };
  if (options_.temperature == 0)
    return std::min_element(candidates_.begin(), candidates_.end(), likelier)->second;
  std::sort(candidates_.begin(), candidates_.end(), likelier);
  if (options_.top_k > 0 && options_.top_k < static_cast<int64_t>(candidates_.size()))
    candidates_.resize(static_cast<size_t>(options_.top_k));
  const double highest = candidates_.front().first;
  double sum = 0;
  for (auto& [value, id] : candidates_)
    sum += value = std::exp((value - highest) / options_.temperature);
  if (options_.top_p < 1) {
    double kept = 0;
    size_t count = 0;
    while (count < candidates_.size() && kept < options_.top_p * sum)
      kept += candidates_[count++].first;
    candidates_.resize(std::max<size_t>(1, count));
    sum = kept;
  }
  double rest = uniform(options_.seed, sample, position) * sum;
  for (const auto& [probability, id] : candidates_) {
    rest -= probability;
    if (rest < 0) return id;
  }
  return candidates_.back().second;
}

}  // namespace bev
