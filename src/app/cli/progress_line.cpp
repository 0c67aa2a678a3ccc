#include "app/cli/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "app/cli/console.h"
#include "base/clock.h"
#include "base/format.h"

namespace bev::app {

std::string progress_text(std::string_view task, int64_t done, int64_t total, std::string_view unit,
                          double seconds) {
  const double part = static_cast<double>(done),
               left = static_cast<double>(std::max(done, total) - done);
  std::string text(task);
  if (total >= 0) {
    const double share = total > 0 ? std::min(1.0, part / static_cast<double>(total)) : 1.0;
    text += format(" {:.0f} %", 100 * share);
  }
  if (seconds <= 0 || done <= 0) return text;
  const double rate = part / seconds;
  text += unit == "bytes" ? format(", {:.1f} MB/s", rate / 1e6)
                          : format(", {} {}/s", with_commas(static_cast<int64_t>(rate)), unit);
  if (total >= 0) text += format(", {} left", as_duration(seconds * left / part));
  return text;
}

ProgressLine::ProgressLine(std::string_view task, int64_t total, std::string_view unit)
    : task_(task),
      unit_(unit),
      total_(total),
      live_(stderr_is_terminal()),
      start_(seconds_now()),
      shown_at_(start_ + 1.8) {}

ProgressLine::~ProgressLine() {
  if (shown_) print_stderr("\r\033[K");
}

double ProgressLine::seconds() const { return seconds_now() - start_; }

void ProgressLine::update(int64_t done) {
  update(done, [] { return std::string(); });
}

void ProgressLine::update(int64_t done, FunctionRef<std::string()> more) {
  if (!live_ || done <= 0) return;
  const double now = seconds_now();
  if (now - shown_at_ < 0.2) return;
  shown_at_ = now;
  shown_ = true;
  std::string line = progress_text(task_, done, total_, unit_, now - start_) + more();
  const size_t columns = terminal_columns(STDERR_FILENO);
  if (columns > 0 && line.size() >= columns) line.resize(columns - 1);
  print_stderr("\r\033[K{}", line);
  std::fflush(stderr);
}

}  // namespace bev::app
