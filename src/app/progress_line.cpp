#include "app/progress_line.h"

#include <unistd.h>

#include <cstdio>

#include "app/terminal.h"
#include "base/clock.h"
#include "base/format.h"

namespace bev::app {

ProgressLine::ProgressLine(std::string_view task, int64_t total, std::string_view unit)
    : task_(task),
      unit_(unit),
      total_(total),
      live_(stderr_is_terminal()),
      start_(seconds_now()),
      shown_at_(start_ + 1.8) {}

ProgressLine::~ProgressLine() {
  if (shown_) say("\r\033[K");
}

double ProgressLine::seconds() const { return seconds_now() - start_; }

void ProgressLine::update(int64_t done) {
  if (!live_ || done <= 0) return;
  const double now = seconds_now();
  if (now - shown_at_ < 0.2) return;
  shown_at_ = now;
  shown_ = true;
  const double passed = now - start_, part = static_cast<double>(done);
  std::string line =
      format("{} {:.0f} %, {} {}/s, {} left", task_, 100 * part / static_cast<double>(total_),
             with_commas(static_cast<int64_t>(part / passed)), unit_,
             as_duration(passed * static_cast<double>(total_ - done) / part));
  const size_t columns = terminal_columns(STDERR_FILENO);
  if (columns > 0 && line.size() >= columns) line.resize(columns - 1);
  say("\r\033[K{}", line);
  std::fflush(stderr);
}

}  // namespace bev::app
