// Choosing the next token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bev {

struct SamplingOptions {
  double temperature = 1;  // 0: always the most likely token
  int64_t top_k = 0;       // only the k most likely; 0: all
  double top_p = 1;        // only the most likely that together reach this probability
  uint64_t seed = 0;
};

// Draws tokens. The draw is a pure function of (seed, sample, position) and the logits, so that a
// text does not depend on what is generated beside it.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options) : options_(options) {}

  // The chosen id. Logits that are not finite have probability 0; when none is finite this is a
  // Numerics error.
  int32_t choose(std::span<const float> logits, int64_t sample, int64_t position);

 private:
  SamplingOptions options_;
  std::vector<std::pair<double, int32_t>> candidates_;  // logit or probability, id
};

}  // namespace bev
