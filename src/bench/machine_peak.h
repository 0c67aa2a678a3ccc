// Measured peaks of this machine: GEMM rate, memory bandwidth, transfers between host and device.
#pragma once

#include "device/device.h"

namespace bev {

struct MachinePeak {
  double flops = 0;      // per second, of large GEMMs: f32, on cuda bf16 of 8192 cubed
  double bandwidth = 0;  // bytes per second through memory
};

MachinePeak measure_peak(Device& device);

// Only the bytes per second.
double measure_bandwidth(Device& device);

// Only the rate of f32 GEMMs, in a fifth of a second.
double measure_gemm_peak(Device& device);

// Bytes per second between pinned host memory and the device.
struct TransferRates {
  double to_device = 0, from_device = 0;
};
TransferRates measure_transfers(Device& device);

}  // namespace bev
