// libFuzzer: any bytes as a metrics.jsonl are read without a fault, whatever the pieces they come
// in, into iterations that ascend and numbers that are in range.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "report/metrics_reader.h"

namespace {

bev::RunMetrics read_in_pieces(std::string_view text, size_t piece) {
  bev::MetricsReader reader;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
    reader.read(text.substr(0, piece));
  return reader.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bev::RunMetrics metrics = read_in_pieces(text, size);
  int64_t last = -1;
  for (const bev::IterationPoint& point : metrics.iterations) {
    if (point.iteration <= last || point.consumed_samples < 0 || point.global_batch < 0)
      std::abort();
    last = point.iteration;
  }
  last = -1;
  for (const bev::EvaluationPoint& point : metrics.validations) {
    if (point.iteration <= last || point.samples < 0) std::abort();
    last = point.iteration;
  }
  for (const bev::RunNote& note : metrics.notes)
    if (note.iteration < 0 || note.text.size() > 1000) std::abort();
  const bev::RunMetrics again = read_in_pieces(text, 1 + data[0] % 7);
  if (again.iterations.size() != metrics.iterations.size() ||
      again.notes.size() != metrics.notes.size() ||
      again.unusable_lines != metrics.unusable_lines ||
      again.has_half_line != metrics.has_half_line)
    std::abort();
  return 0;
}
