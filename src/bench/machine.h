// What this machine can do at best, measured now: the yardstick of every other number.
#pragma once

#include "device/device.h"

namespace bev {

struct MachinePeak {
  double flops = 0;      // per second, of a large f32 product
  double bandwidth = 0;  // bytes per second through memory
};

MachinePeak measure_peak(Device& device);

// Only the rate of products, in a fifth of a second.
double measure_product_peak(Device& device);

}  // namespace bev
