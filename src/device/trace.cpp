#include "device/trace.h"

#include "base/format.h"

namespace bev {

void Trace::begin(const char* op, Stream stream) {
  ops_.push_back({op, stream.index(), TimerEvent(device_, stream), {}});
}

void Trace::end(Stream stream) { ops_.back().end = TimerEvent(device_, stream); }

std::vector<OpSpan> Trace::spans() const {
  std::vector<OpSpan> spans;
  spans.reserve(ops_.size());
  for (const Marked& m : ops_) {
    const double begin = m.begin.seconds_since(origin_);
    spans.push_back({m.op, begin, begin + m.end.seconds_since(m.begin), m.stream});
  }
  return spans;
}

std::string Trace::chrome_json() const {
  constexpr double kMicroseconds = 1e6;
  constexpr const char* kStreams[] = {"compute", "copy", "exchange", "tensor"};
  std::string text = "[";
  for (size_t stream = 0; stream < std::size(kStreams); ++stream) {
    text += format(
        "{}\n{{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 0, \"tid\": {}, \"args\": "
        "{{\"name\": \"{}\"}}}}",
        stream > 0 ? "," : "", stream, kStreams[stream]);
  }
  for (const OpSpan& span : spans()) {
    text += format(
        ",\n{{\"name\": \"{}\", \"cat\": \"op\", \"ph\": \"X\", \"pid\": 0, \"tid\": {}, "
        "\"ts\": {:.3f}, \"dur\": {:.3f}}}",
        span.op, span.stream, kMicroseconds * span.begin, kMicroseconds * (span.end - span.begin));
  }
  return text + "\n]\n";
}

}  // namespace bev
