#include "app/progress.h"

#include <algorithm>
#include <cstdio>

#include "app/terminal.h"
#include "base/clock.h"
#include "base/format.h"

namespace bev::app {

namespace {

constexpr double kSilent = 2.0;    // seconds
constexpr double kInterval = 0.2;  // between two lines
constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

std::string progress_line(const std::string& activity, double done, double total, double seconds) {
  const double share = total > 0 ? std::clamp(done / total, 0.0, 1.0) : 1.0;
  std::string line = format("{}: {:.0f} %", activity, 100 * share);
  if (seconds > 0 && done > 0)
    line += format(", {}/s, {} left", as_bytes(done / seconds),
                   as_duration(seconds * std::max(0.0, total - done) / done));
  return line;
}

Progress::Progress(std::string activity, double total)
    : activity_(std::move(activity)),
      total_(total),
      begun_(seconds_now()),
      next_(begun_ + kSilent),
      live_(stderr_is_terminal()) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "{}", kClearLine);
}

void Progress::at(double done) {
  if (!live_) return;
  const double now = seconds_now();
  if (now < next_) return;
  next_ = now + kInterval;
  shown_ = true;
  fmt::print(stderr, "{}{}", kClearLine, progress_line(activity_, done, total_, now - begun_));
  std::fflush(stderr);
}

}  // namespace bev::app
