// Three stages over a stream of items: one thread produces, several work, and the caller consumes
// in the order of production, whoever finished first. Items live in a fixed number of slots, which
// bounds the memory: a slow stage makes the others wait.
#pragma once

#include <cstddef>

#include "base/function_ref.h"

namespace bev {

struct PipelineStages {
  FunctionRef<bool(size_t slot)> produce;              // fills the slot; false: there are no more
  FunctionRef<void(size_t worker, size_t slot)> work;  // on up to `workers` threads at once
  FunctionRef<bool(size_t slot)> consume;              // on the calling thread; false: enough
};

// Returns when the last item was consumed. What a stage throws is thrown here when everything
// before that item was consumed, so the outcome does not depend on the number of workers.
// REQUIRES: workers >= 1, slots >= 1.
void run_ordered(size_t workers, size_t slots, const PipelineStages& stages);

}  // namespace bev
