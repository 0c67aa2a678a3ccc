#include "device/cuda/cuda_device.h"

#include "base/check.h"

namespace bev {

using cuda::check_cuda;

CudaDevice::CudaDevice(const OpTable& ops, const DevicePolicy& policy, int ordinal)
    : Device(ops, policy) {
  check_cuda(cudaSetDevice(ordinal), "choosing the GPU");
  check_cuda(cudaFree(nullptr), "starting the GPU");
  int major = 0, minor = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal), "asking");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal), "asking");
  check_cuda(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, ordinal),
             "asking");
  compute_capability_ = 10 * major + minor;
  BEV_CHECK(compute_capability_ >= 80, Device,
            "the GPU has compute capability {}.{}; 8.0 (Ampere) or newer is needed", major, minor);
  for (cudaStream_t& stream : streams_) {
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  }
}

CudaDevice::Events::~Events() {
  for (cudaEvent_t event : handles) {
    if (event != nullptr) cudaEventDestroy(event);
  }
}

CudaDevice::~CudaDevice() {
  for (cudaEvent_t timer : timers_) cudaEventDestroy(timer);
  for (cudaStream_t stream : streams_) {
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
}

std::byte* CudaDevice::do_allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // The failure is reported here; it must not fail the next call.
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw Error(ErrorKind::Device,
                format("the GPU has no {} left: {} of its {} are free",
                       as_bytes(static_cast<double>(bytes)), as_bytes(static_cast<double>(free)),
                       as_bytes(static_cast<double>(total))));
  }
  check_cuda(status, "allocating memory");
  check_cuda(cudaMemsetAsync(data, 0, bytes, streams_[0]), "clearing memory");
  check_cuda(cudaStreamSynchronize(streams_[0]), "clearing memory");
  return static_cast<std::byte*>(data);
}

// What a failed kernel left behind was reported when it was found; owners go away all the same.
void CudaDevice::do_release(std::byte* data, size_t) { cudaFree(data); }

cudaEvent_t CudaDevice::event_of(Event event) const {
  return event.handle == 0 ? nullptr : events_->handles[event.handle % kEvents];
}

Event CudaDevice::record(int stream) {
  cudaEvent_t& event = events_->handles[++recorded_ % kEvents];
  if (event == nullptr) {
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  }
  check_cuda(cudaEventRecord(event, streams_[static_cast<size_t>(stream)]), "recording an event");
  return {recorded_};
}

void CudaDevice::wait(int stream, Event event) { wait_for(stream, {nullptr, event_of(event)}); }

SharedEvent CudaDevice::share(Event event) { return {events_, event_of(event)}; }

void CudaDevice::wait_for(int stream, const SharedEvent& event) {
  if (event.handle == nullptr) return;
  check_cuda(cudaStreamWaitEvent(streams_[static_cast<size_t>(stream)],
                                 static_cast<cudaEvent_t>(event.handle), 0),
             "waiting for an event");
}

void CudaDevice::finish(Event event) {
  cudaEvent_t handle = event_of(event);
  if (handle != nullptr) check_cuda(cudaEventSynchronize(handle), "waiting for the GPU");
}

uint64_t CudaDevice::start_timer(int stream) {
  if (idle_timers_.empty()) {
    cudaEvent_t made = nullptr;
    check_cuda(cudaEventCreate(&made), "making a timer");
    idle_timers_.push_back(timers_.size());
    timers_.push_back(made);
  }
  const uint64_t timer = idle_timers_.back();
  check_cuda(cudaEventRecord(timers_[timer], streams_[static_cast<size_t>(stream)]),
             "starting a timer");
  idle_timers_.pop_back();
  return timer;
}

double CudaDevice::seconds_between(uint64_t first, uint64_t second) {
  check_cuda(cudaEventSynchronize(timers_[first]), "waiting for the GPU");
  check_cuda(cudaEventSynchronize(timers_[second]), "waiting for the GPU");
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, timers_[first], timers_[second]),
             "reading a timer");
  return 1e-3 * static_cast<double>(milliseconds);
}

void CudaDevice::release_timer(uint64_t timer) { idle_timers_.push_back(timer); }

// Calls of other threads do not end the capture.
bool CudaDevice::begin_capture(int stream) {
  return cudaStreamBeginCapture(streams_[static_cast<size_t>(stream)],
                                cudaStreamCaptureModeThreadLocal) == cudaSuccess;
}

uint64_t CudaDevice::end_capture(int stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t instance = nullptr;
  if (cudaStreamEndCapture(streams_[static_cast<size_t>(stream)], &graph) == cudaSuccess)
    cudaGraphInstantiate(&instance, graph, 0);
  if (graph != nullptr) cudaGraphDestroy(graph);
  cudaGetLastError();  // The caller does without it; it must not fail the next call.
  return reinterpret_cast<uint64_t>(instance);
}

void CudaDevice::launch_graph(int stream, uint64_t graph) {
  check_cuda(cudaGraphLaunch(reinterpret_cast<cudaGraphExec_t>(graph),
                             streams_[static_cast<size_t>(stream)]),
             "launching a CUDA graph");
}

void CudaDevice::release_graph(uint64_t graph) {
  cudaGraphExecDestroy(reinterpret_cast<cudaGraphExec_t>(graph));
}

void CudaDevice::synchronize(int stream) {
  check_cuda(cudaStreamSynchronize(streams_[static_cast<size_t>(stream)]), "waiting for the GPU");
}

void CudaDevice::upload(const void* host, std::byte* device, size_t bytes) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, streams_[0]),
             "copying to the GPU");
  synchronize(0);
}

void CudaDevice::download(const std::byte* device, void* host, size_t bytes) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, streams_[0]),
             "copying from the GPU");
  synchronize(0);
}

std::byte* CudaDevice::allocate_pinned(size_t bytes) {
  void* data = nullptr;
  check_cuda(cudaHostAlloc(&data, bytes, cudaHostAllocDefault), "allocating pinned host memory");
  return static_cast<std::byte*>(data);
}

void CudaDevice::release_pinned(std::byte* data, size_t) { cudaFreeHost(data); }

void CudaDevice::upload_on(Stream stream, const std::byte* pinned, std::byte* device,
                           size_t bytes) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice,
                             streams_[static_cast<size_t>(stream.index())]),
             "copying to the GPU");
}

void CudaDevice::download_on(Stream stream, const std::byte* device, std::byte* pinned,
                             size_t bytes) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost,
                             streams_[static_cast<size_t>(stream.index())]),
             "copying from the GPU");
}

void CudaDevice::copy_on(Stream stream, const std::byte* from, std::byte* to, size_t bytes) {
  if (from == to || bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                             streams_[static_cast<size_t>(stream.index())]),
             "copying on the GPU");
}

}  // namespace bev

namespace bev::cuda {

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw Error(ErrorKind::Device, format("CUDA, {}: {} ({})", what, cudaGetErrorString(status),
                                        cudaGetErrorName(status)));
}

}  // namespace bev::cuda
