// Interface between the modules that write gradients and the optimizer that reduces them.
#pragma once

#include "device/exec.h"

namespace bev {

// Notified as the gradients of a bucket are written.
class GradSink {
 public:
  virtual ~GradSink() = default;
  // True if buckets share staging memory: a bucket must be reduced before the next one starts.
  virtual bool streams_buckets() const = 0;
  // Modules write gradients of the bucket's parameters from now on.
  virtual void begin_bucket_grads(Exec& ex, int bucket) = 0;
  // This micro-batch adds nothing more to them before other buckets are reduced. finished: neither
  // does a later micro-batch of this step.
  virtual void end_bucket_grads(Exec& ex, int bucket, bool finished) = 0;
};

}  // namespace bev
