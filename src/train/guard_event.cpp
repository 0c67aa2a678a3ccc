#include "train/guard_event.h"

#include "base/format.h"

namespace bev {

std::string describe_findings(int64_t iteration, const StepResult& r) {
  if ((r.findings & kLossNotFinite) != 0)
    return format("the loss of iteration {} is not finite", iteration);
  if ((r.findings & kNormNotFinite) != 0)
    return format("the gradient of iteration {} is not finite", iteration);
  std::string text;
  if ((r.findings & kLossSpike) != 0)
    text = format("the loss of iteration {} is a spike: {:.4f}, where up to {:.4f} is usual",
                  iteration, r.loss, r.loss_limit);
  if ((r.findings & kNormSpike) != 0)
    text += format("{} is a spike: {:.3f}, where up to {:.3f} is usual",
                   text.empty() ? format("the gradient norm of iteration {}", iteration)
                                : "; its gradient norm",
                   r.grad_norm, r.norm_limit);
  return text;
}

}  // namespace bev
