#include "device/timing.h"

#include "base/check.h"

namespace bev {

void WaitTimer::begin(Stream stream) {
  if (counts(stream)) steps_.back().push_back({TimerEvent(device_, stream), {}});
}

void WaitTimer::end(Stream stream) {
  if (counts(stream)) steps_.back().back().end = TimerEvent(device_, stream);
}

double WaitTimer::take() {
  BEV_CHECK(!steps_.empty(), Internal, "no step was metered");
  double seconds = 0;
  for (const Span& span : steps_.front()) seconds += span.end.seconds_since(span.begin);
  steps_.pop_front();
  return seconds;
}

}  // namespace bev
