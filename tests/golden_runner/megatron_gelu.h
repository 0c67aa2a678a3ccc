// Megatron-LM's fused GELU in float64. In f32, in which it runs on GPUs, its constants are those of
// gelu-tanh; in float64 they differ by 1e-9.
#pragma once

#include <memory>

#include "device/device.h"

namespace bev::golden {

// The reference device with Megatron-LM's constants in gelu-tanh, so that comparisons in float64
// are exact.
std::unique_ptr<Device> make_megatron_reference();

}  // namespace bev::golden
