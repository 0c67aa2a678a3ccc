#include "device/trace.h"

#include "base/format.h"

namespace bev {

void Trace::begin(const char* op, Stream stream) {
  spans_.push_back({op, device_.mark_time(stream), 0});
}

void Trace::end(Stream stream) { spans_.back().end = device_.mark_time(stream); }

std::string Trace::chrome_json() const {
  constexpr double kMicroseconds = 1e6;
  std::string text = "[";
  for (const Span& span : spans_) {
    const double begin = device_.seconds_between(origin_, span.begin);
    const double length = device_.seconds_between(span.begin, span.end);
    text += format(
        "{}\n{{\"name\": \"{}\", \"cat\": \"op\", \"ph\": \"X\", \"pid\": 0, \"tid\": 0, "
        "\"ts\": {:.3f}, \"dur\": {:.3f}}}",
        text.size() > 1 ? "," : "", span.op, kMicroseconds * begin, kMicroseconds * length);
  }
  return text + "\n]\n";
}

}  // namespace bev
