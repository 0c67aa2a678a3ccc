// When each op of a piece of work ran, by timers in the device's own order, as a file for Chrome's
// or Perfetto's viewer.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"

namespace bev {

class Trace {
 public:
  explicit Trace(Device& device)
      : device_(device), origin_(device.mark_time(device.compute_stream())) {}

  // Around the issue of one op. Calls do not nest.
  void begin(const char* op, Stream stream);
  void end(Stream stream);

  // A JSON array of complete events, times in microseconds since construction. Waits for the work.
  std::string chrome_json() const;

 private:
  struct Span {
    const char* op;
    int64_t begin, end;
  };
  Device& device_;
  int64_t origin_;
  std::vector<Span> spans_;
};

}  // namespace bev
