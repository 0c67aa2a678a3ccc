#include "train/evaluation.h"

#include <algorithm>

namespace bev {

Evaluation::Evaluation(Executor& executor, const BatchShape& shape, const BatchSpec& fields,
                       int share, int shares)
    : executor_(executor),
      share_(share),
      shares_(shares),
      batches_(static_cast<size_t>(shape.micros)) {
  for (HostBatch& batch : batches_) batch.resize(shape.micro_batch, fields);
}

LossSums Evaluation::run(const Dataset& samples, int64_t first, int64_t count) {
  return *run_while([] { return true; }, samples, first, count);
}

std::optional<LossSums> Evaluation::run_while(FunctionRef<bool()> goes_on, const Dataset& samples,
                                              int64_t first, int64_t count) {
  LossSums total{};
  const int64_t begin = first, end = first + count;
  while (first < end) {
    if (first > begin && !goes_on()) return std::nullopt;
    for (HostBatch& batch : batches_) {
      for (int64_t at = 0; at < batch.sequences; ++at) {
        const int64_t sample = first + share_ * batch.sequences + at;
        // Places beyond the end are filled with the first samples, which then have no weight. A
        // bi-encoder compares the others with them.
        samples.read(sample < end ? sample : begin + (sample - end) % count, batch, at);
        if (sample >= end) batch.exclude(at);
      }
      first += shares_ * batch.sequences;
    }
    const LossSums sums = executor_.evaluate(batches_);
    for (size_t i = 0; i < sums.size(); ++i) {
      total[i].sum += sums[i].sum;
      total[i].count += sums[i].count;
    }
  }
  return total;
}

}  // namespace bev
