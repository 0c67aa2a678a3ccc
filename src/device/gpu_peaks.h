// What the makers of GPUs promise: the yardstick of MFU.
#pragma once

#include <string_view>

namespace bev {

// FLOP per second of dense bf16 GEMMs with f32 sums, by the name that the driver gives the GPU;
// 0 when it is not known here.
double dense_bf16_peak(std::string_view gpu_name);

}  // namespace bev
