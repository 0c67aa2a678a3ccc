// Our own attention kernels: every mask, dropout by logical index, any head size. Deterministic,
// but for a backward in one pass.
#pragma once

#include "ops/attention.h"

namespace bev::cuda {

void flash_forward(Exec& ex, const ops::Attention& a, const Tensor& workspace);
bool flash_backward_is_one_pass(const ops::AttentionBackward& a, const DevicePolicy& policy);
void flash_backward(Exec& ex, const ops::AttentionBackward& a, const Tensor& workspace);

}  // namespace bev::cuda
