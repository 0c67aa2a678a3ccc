#include "device/trace.h"

#include "base/format.h"

namespace bev {

void Trace::begin(const char* op, Stream stream) {
  ops_.push_back({op, TimeMark(device_, stream), {}});
}

void Trace::end(Stream stream) { ops_.back().end = TimeMark(device_, stream); }

std::vector<OpSpan> Trace::spans() const {
  std::vector<OpSpan> spans;
  spans.reserve(ops_.size());
  for (const Marked& m : ops_) {
    const double begin = m.begin.seconds_since(origin_);
    spans.push_back({m.op, begin, begin + m.end.seconds_since(m.begin)});
  }
  return spans;
}

std::string Trace::chrome_json() const {
  constexpr double kMicroseconds = 1e6;
  std::string text = "[";
  for (const OpSpan& span : spans()) {
    text += format(
        "{}\n{{\"name\": \"{}\", \"cat\": \"op\", \"ph\": \"X\", \"pid\": 0, \"tid\": 0, "
        "\"ts\": {:.3f}, \"dur\": {:.3f}}}",
        text.size() > 1 ? "," : "", span.op, kMicroseconds * span.begin,
        kMicroseconds * (span.end - span.begin));
  }
  return text + "\n]\n";
}

}  // namespace bev
