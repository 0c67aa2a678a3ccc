// Assembles a device: memory, threads and the op table of its backend.
#pragma once

#include <memory>

#include "device/device.h"

namespace bev {

// threads 0: as many as this process may use.
std::unique_ptr<Device> make_device(DeviceKind kind, int threads);

// A device without memory that plans for `imitates`.
std::unique_ptr<Device> make_null_device(DeviceKind imitates, int threads);

int usable_threads();

}  // namespace bev
