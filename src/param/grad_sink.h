// Interface between the modules that write gradients and the optimizer that reduces them.
#pragma once

#include "device/exec.h"

namespace bev {

// Notified as the gradients of a bucket are written.
class GradSink {
 public:
  virtual ~GradSink() = default;
  // Whether the gradients of buckets pass through the same memory: one is then done before another
  // begins.
  virtual bool streams_buckets() const = 0;
  // Gradients of the bucket's parameters are written from here on.
  virtual void begin_bucket_grads(Exec& ex, int bucket) = 0;
  // This micro-batch adds nothing more to them, or not before other buckets are done; `finished`:
  // neither does another of this step.
  virtual void end_bucket_grads(Exec& ex, int bucket, bool finished) = 0;
};

}  // namespace bev
