// The end of metrics.jsonl, for whoever wants to know how far a run is without reading weeks of it.
#pragma once

#include <filesystem>
#include <optional>

namespace bev {

struct LastMetrics {
  int64_t iteration = 0;   // the last one; 0: none
  int64_t iterations = 0;  // of the training; 0: not known
  int64_t samples = 0;
  std::optional<double> loss{}, grad_norm{}, learning_rate{}, seconds{}, tokens_per_second{};
  std::optional<double> valid_loss{};  // the last one, where it is not far from the end
  double written = 0;                  // seconds since 1970
};

// Reads no more than the end and the first line; what is not whole or makes no sense counts as not
// there. None: there is no such file. Data error: it cannot be read.
std::optional<LastMetrics> read_metrics_tail(const std::filesystem::path& path);

}  // namespace bev
