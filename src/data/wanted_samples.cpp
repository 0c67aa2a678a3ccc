#include "data/wanted_samples.h"

#include <algorithm>

#include "config/resolve.h"

namespace bev {

std::array<int64_t, 3> wanted_samples(const Config& config) {
  const auto product = [](auto... factors) {
    constexpr double kMost = 1e15;  // more than anybody trains; keeps the products in range
    return static_cast<int64_t>(std::min(kMost, (static_cast<double>(factors) * ...)));
  };
  const int64_t batch = resolve_batch(config).global_batch;
  const int64_t iterations = resolve_iterations(config);
  const EvalConfig& eval = config.eval;
  // One validation every interval, and one at the end.
  const int64_t validations = (eval.interval > 0 ? iterations / eval.interval : 0) + 1;
  return {config.train.samples > 0 ? config.train.samples : product(iterations, batch),
          product(validations, eval.iterations, batch), product(eval.iterations, batch)};
}

}  // namespace bev
