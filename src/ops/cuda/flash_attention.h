// Our own attention kernels: every mask, dropout by logical index, any head size, deterministic.
#pragma once

#include "ops/attention.h"

namespace bev::cuda {

void flash_forward(Exec& ex, const ops::Attention& a, const Tensor& workspace);
void flash_backward(Exec& ex, const ops::AttentionBackward& a, const Tensor& workspace);

}  // namespace bev::cuda
