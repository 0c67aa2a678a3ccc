// What a training prints, in the words of Megatron-LM, so that the scripts that read its logs read
// ours. What we add stands behind its fields.
#pragma once

#include <string>

#include "train/train_log.h"

namespace bev {

// Iterations since the last log line.
class LogInterval {
 public:
  void add(const Progress& progress);
  bool empty() const { return iterations_ == 0; }

  // " iteration        5/     100 | consumed samples: ... |" with the mean loss of the applied
  // updates; starts a new interval. `peak_flops` (per second; 0: unknown) and `flops_per_token`
  // give the fraction of peak. `slowest`: of the ranks, in words; may be empty.
  std::string take_line(const Progress& now, double flops_per_token, double peak_flops,
                        const std::string& slowest = {});

 private:
  int64_t iterations_ = 0, applied_ = 0, skipped_ = 0, nan_ = 0;
  std::array<double, kMostLosses> losses_{};  // sums over applied updates
  double seconds_ = 0, tokens_per_second_ = 0;
};

// Two rules of dashes around " validation loss at iteration 5 | lm loss value: ... | lm loss PPL:
// ... | ".
std::string validation_block(const Validation& validation);

// A short line for a terminal, at most `columns` wide.
std::string live_line(const Progress& progress, size_t columns);

}  // namespace bev
