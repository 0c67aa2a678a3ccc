// An NVIDIA GPU: memory, a stream for work, streams beside it for copies and for what ranks
// exchange.
#pragma once

#include <cuda_runtime_api.h>

#include <array>

#include "device/device.h"

namespace bev {

class CudaDevice : public Device {
 public:
  // `ordinal`: which of the visible GPUs. Throws a Device error when it cannot be used.
  CudaDevice(const OpTable& ops, const DevicePolicy& policy, int ordinal);
  ~CudaDevice() override;

  DeviceKind kind() const override { return DeviceKind::Cuda; }
  bool is_asynchronous() const override { return true; }
  bool supports_graphs() const override { return policy().graphs; }
  cudaStream_t stream(int index) const { return streams_[static_cast<size_t>(index)]; }
  int multiprocessors() const { return multiprocessors_; }
  int compute_capability() const { return compute_capability_; }  // 90 for sm_90

  void finish(Event event) override;
  void upload(const void* host, std::byte* device, size_t bytes) override;
  void download(const std::byte* device, void* host, size_t bytes) override;
  std::byte* allocate_pinned(size_t bytes) override;
  void release_pinned(std::byte* data, size_t bytes) override;
  void upload_on(Stream stream, const std::byte* pinned, std::byte* device, size_t bytes) override;
  void download_on(Stream stream, const std::byte* device, std::byte* pinned,
                   size_t bytes) override;
  void copy_on(Stream stream, const std::byte* from, std::byte* to, size_t bytes) override;

 private:
  std::byte* do_allocate(size_t bytes) override;
  void do_release(std::byte* data, size_t bytes) override;
  Event record(int stream) override;
  void wait(int stream, Event event) override;
  SharedEvent share(Event event) override;
  void wait_for(int stream, const SharedEvent& event) override;
  void synchronize(int stream) override;
  uint64_t start_timer(int stream) override;
  double seconds_between(uint64_t first, uint64_t second) override;
  void release_timer(uint64_t timer) override;
  bool begin_capture(int stream) override;
  uint64_t end_capture(int stream) override;
  void launch_graph(int stream, uint64_t graph) override;
  void release_graph(uint64_t graph) override;
  cudaEvent_t event_of(Event event) const;

  // Events are numbered from 1 and reuse this many handles in turn: nobody waits for one that is
  // tens of thousands of records old.
  static constexpr size_t kEvents = 1 << 16;

  int multiprocessors_ = 0, compute_capability_ = 0;
  std::array<cudaStream_t, 4> streams_{};
  struct Events {
    std::array<cudaEvent_t, kEvents> handles{};
    ~Events();
  };
  std::shared_ptr<Events> events_ = std::make_shared<Events>();
  uint64_t recorded_ = 0;
  // Events with a clock. A timer is an index; those of the second list are free to be started
  // again.
  std::vector<cudaEvent_t> timers_;
  std::vector<uint64_t> idle_timers_;
};

}  // namespace bev

// Errors of CUDA calls become Device errors.

namespace bev::cuda {

// Throws a Device error that names `what`, unless status is success.
void check_cuda(cudaError_t status, const char* what);

// After a launch: an error in its configuration.
inline void check_launch(const char* op) { check_cuda(cudaGetLastError(), op); }

}  // namespace bev::cuda
