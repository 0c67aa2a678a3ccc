// The loss of a model on samples, without dropout and without an update.
#pragma once

#include <optional>

#include "base/function_ref.h"
#include "config/resolve.h"
#include "data/batch.h"
#include "pipeline/executor.h"

namespace bev {

// Runs an executor over ranges of samples, one step's worth of micro-batches at a time.
class Evaluation {
 public:
  // The executor must outlive this. `share` of `shares`: of every `shares` micro-batches, which one
  // this rank computes.
  Evaluation(Executor& executor, const BatchShape& shape, const BatchSpec& fields, int share = 0,
             int shares = 1);

  // Samples [first, first + count): what does not fill the last micro-batch is left out of the
  // sums. All ranks together; each gets the whole sums.
  LossSums run(const Dataset& samples, int64_t first, int64_t count);
  // The same; nothing when `goes_on`, which is asked before every step's worth of micro-batches but
  // the first, says no.
  std::optional<LossSums> run_while(FunctionRef<bool()> goes_on, const Dataset& samples,
                                    int64_t first, int64_t count);

 private:
  Executor& executor_;
  int64_t share_, shares_;
  std::vector<HostBatch> batches_;
};

}  // namespace bev
