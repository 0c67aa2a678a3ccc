#include "report/log_line.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace bev {

void LogInterval::add(const Progress& p) {
  ++iterations_;
  seconds_ += p.seconds;
  tokens_per_second_ += p.tokens_per_second * p.seconds;
  if (p.result.applied) {
    ++applied_;
    size_t i = 0;
    for (const LossMean& loss : p.result.losses) losses_[i++] += loss.value;
  } else {
    ++skipped_;
    nan_ += std::isfinite(p.result.loss) ? 0 : 1;
  }
}

std::string LogInterval::take_line(const Progress& now, double flops_per_token, double peak_flops,
                                   const std::string& slowest) {
  const double count = static_cast<double>(std::max<int64_t>(1, iterations_));
  std::string line = format(
      " iteration {:8d}/{:8d} | consumed samples: {:12d} | elapsed time per iteration (ms): "
      "{:.1f} | learning rate: {:.3E} | global batch size: {:5d} |",
      now.iteration, now.iterations, now.samples, 1e3 * seconds_ / count, now.result.next_lr,
      now.batch);
  if (applied_ > 0) {
    size_t i = 0;
    for (const LossMean& loss : now.result.losses)
      line += format(" {}: {:.6E} |", label_of_loss(loss.name),
                     losses_[i++] / static_cast<double>(applied_));
  }
  line += format(" loss scale: {:.1f} |", now.result.loss_scale);
  if (std::isfinite(now.result.grad_norm))
    line += format(" grad norm: {:.3f} |", now.result.grad_norm);
  line += format(" number of skipped iterations: {:3d} | number of nan iterations: {:3d} |",
                 skipped_, nan_);
  const double rate = seconds_ > 0 ? tokens_per_second_ / seconds_ : 0;
  line += format(" tokens/s: {:.0f} |", rate);
  if (peak_flops > 0)
    line += format(" of peak: {:.1f} % |", 100 * rate * flops_per_token / peak_flops);
  if (!slowest.empty()) line += format(" slowest rank: {} |", slowest);
  line += format(" ETA: {} |", as_duration(now.seconds_left));
  *this = {};
  return line;
}

std::string validation_block(const Validation& v) {
  // Beyond this the perplexity says nothing.
  constexpr double kMostNats = 20;
  std::string where = format("iteration {}", v.iteration);
  if (v.at_end) where += format(" on {} set", v.split);
  std::string line = format(" validation loss at {} | ", where);
  for (const LossMean& loss : v.losses) {
    const std::string label = label_of_loss(loss.name);
    line += format("{} value: {:.6E} | ", label, loss.value);
    if (is_accuracy(loss.name)) continue;
    line += format("{} PPL: {:.6E} | ", label, std::exp(std::min(kMostNats, loss.value)));
  }
  const std::string rule(line.size() + 1, '-');
  return format("{}\n{}\n{}", rule, line, rule);
}

std::string live_line(const Progress& p, size_t columns) {
  std::string line =
      format("{}/{}  loss {:.4f}  {:.0f} tokens/s  {} left", p.iteration, p.iterations,
             p.result.loss, p.tokens_per_second, as_duration(p.seconds_left));
  // A full line would wrap and leave rests behind.
  if (columns > 0 && line.size() >= columns) line.resize(columns - 1);
  return line;
}

}  // namespace bev
