#include "device/wait_timer.h"

#include "base/check.h"

namespace bev {

void WaitMeter::begin(Stream stream) {
  if (counts(stream)) steps_.back().push_back({TimeMark(device_, stream), {}});
}

void WaitMeter::end(Stream stream) {
  if (counts(stream)) steps_.back().back().end = TimeMark(device_, stream);
}

double WaitMeter::take() {
  BEV_CHECK(!steps_.empty(), Internal, "no step was metered");
  double seconds = 0;
  for (const Span& span : steps_.front()) seconds += span.end.seconds_since(span.begin);
  steps_.pop_front();
  return seconds;
}

}  // namespace bev
