// Assembles a device: memory, streams or threads, and the op table of its backend.
#pragma once

#include <memory>
#include <string>

#include "config/config.h"
#include "device/cuda/gpu_info.h"
#include "device/device.h"

namespace bev {

// threads 0: as many as this process may use. Throws a Device error that says what is missing when
// the device cannot be used here.
std::unique_ptr<Device> make_device(const DeviceConfig& config);
// The same without a memory of earlier runs.
std::unique_ptr<Device> make_device(DeviceKind kind, int threads);

// A device without memory that plans for the one described.
std::unique_ptr<Device> make_null_device(const DeviceConfig& imitates);
std::unique_ptr<Device> make_null_device(DeviceKind imitates, int threads);

int usable_threads();
// Threads of one rank: device.threads, else its share of those this process may use.
int threads_of_rank(const Config& config);

// Why the cuda device cannot be used here, in a sentence; empty when it can.
std::string why_no_cuda();

// What is known about GPUs and NVIDIA's libraries; without CUDA in this build, only that.
CudaInfo cuda_facts(cuda::Depth depth);

// The name of the GPU that the cuda device uses; empty where there is none.
std::string gpu_name();

// What device.kind auto means here.
DeviceKind automatic_device();

// Bytes a run may still take on that device: free memory of the machine or the GPU. 0: unknown.
size_t free_memory(DeviceKind kind);

}  // namespace bev
