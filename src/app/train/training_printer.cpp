#include "app/train/training_printer.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "app/cli/terminal.h"
#include "base/clock.h"
#include "base/format.h"
#include "report/plot/ascii_curve.h"

namespace bev::app {

TrainingPrinter::TrainingPrinter(const Voice& voice, const Options& options)
    : voice_(voice), options_(options), live_(voice.prints() && stderr_is_terminal()) {}

void TrainingPrinter::iteration(const Progress& p) {
  if (options_.times) slowest_.add(options_.times());
  interval_.add(p);
  if (losses_.empty()) first_ = p.iteration;
  losses_.push_back(p.result.loss);
  last_ = p;
  const double now = seconds_now();
  if (p.iteration == 1 || p.iteration == p.iterations || p.iteration % options_.interval == 0 ||
      !p.result.applied) {
    print_interval(p);
    shown_at_ = now;
  } else if (live_ && now - shown_at_ > 0.2) {
    say("\r\033[K{}", live_line(p, terminal_columns(STDERR_FILENO)));
    std::fflush(stderr);
    live_shown_ = true;
    shown_at_ = now;
  }
}

void TrainingPrinter::validation(const Validation& v) { print(validation_block(v)); }

void TrainingPrinter::finish() {
  if (!interval_.empty()) print_interval(last_);
  clear_live();
}

std::string TrainingPrinter::curve() const {
  const size_t columns = terminal_columns(STDOUT_FILENO);
  return loss_curve(losses_, columns == 0 ? 72 : std::min<size_t>(columns, 72));
}

void TrainingPrinter::rolled_back(int64_t iteration) {
  const auto left = static_cast<size_t>(std::max<int64_t>(0, iteration + 1 - first_));
  losses_.resize(std::min(losses_.size(), left));
  interval_ = {};
}

void TrainingPrinter::print_interval(const Progress& p) {
  slowest_text_ = slowest_.take_text();
  print(interval_.take_line(p, options_.flops_per_token, options_.peak_flops, slowest_text_));
}

void TrainingPrinter::print(const std::string& line) {
  clear_live();
  voice_.record(line);
}

void TrainingPrinter::clear_live() {
  if (!live_shown_) return;
  say("\r\033[K");
  std::fflush(stderr);
  live_shown_ = false;
}

}  // namespace bev::app
