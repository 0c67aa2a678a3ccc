// A trace of one piece of work: when each op ran, by timers in the device's own order, as a file
// for Chrome's or Perfetto's viewer.
#pragma once

#include <string>
#include <vector>

#include "device/timing.h"

namespace bev {

// One op of a trace, in seconds since the trace was made.
struct OpSpan {
  const char* op;
  double begin, end;
  int stream = 0;
};

class Trace {
 public:
  explicit Trace(Device& device) : device_(device), origin_(device, device.compute_stream()) {}

  // Around the issue of one op. Calls do not nest.
  void begin(const char* op, Stream stream);
  void end(Stream stream);

  // In the order of issue. Waits for the work.
  std::vector<OpSpan> spans() const;
  // The same as a JSON array of complete events, in microseconds; streams are threads.
  std::string chrome_json() const;

 private:
  struct Marked {
    const char* op;
    int stream;
    TimerEvent begin, end;
  };
  Device& device_;
  TimerEvent origin_;
  std::vector<Marked> ops_;
};

}  // namespace bev
