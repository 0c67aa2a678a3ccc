#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/format.h"
#include "device/device.h"
#include "device/thread_pool.h"

namespace bev {

HostDevice::HostDevice(DeviceKind kind, const OpTable& ops, int threads, size_t workspace_bytes)
    : Device(ops),
      kind_(kind),
      pool_(std::make_unique<ThreadPool>(threads)),
      workspace_bytes_(workspace_bytes) {
  const size_t total = workspace_bytes * static_cast<size_t>(threads);
  if (total > 0) workspace_ = allocate(total, "workspace");
}

HostDevice::~HostDevice() {
  if (workspace_ != nullptr) {
    release(workspace_, workspace_bytes_ * static_cast<size_t>(pool_->threads()), "workspace");
  }
}

std::byte* HostDevice::workspace(int thread) const {
  return workspace_ + workspace_bytes_ * static_cast<size_t>(thread);
}

void HostDevice::upload(const void* host, std::byte* device, size_t bytes) {
  if (bytes > 0) std::memcpy(device, host, bytes);
}

void HostDevice::download(const std::byte* device, void* host, size_t bytes) {
  if (bytes > 0) std::memcpy(host, device, bytes);
}

void HostDevice::copy_on(Stream, const std::byte* from, std::byte* to, size_t bytes) {
  if (from != to && bytes > 0) std::memcpy(to, from, bytes);
}

std::byte* HostDevice::do_allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  void* address =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  BEV_CHECK(address != MAP_FAILED, Device, "cannot allocate {} of host memory: {}",
            as_bytes(static_cast<double>(bytes)), std::strerror(errno));
  // Weight matrices are walked with strides of a row; large pages keep that from missing the TLB.
  constexpr size_t kHugePage = size_t{2} << 20;
  if (bytes >= kHugePage) ::madvise(address, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(address);
}

void HostDevice::do_release(std::byte* data, size_t bytes) {
  if (data != nullptr) ::munmap(data, bytes);
}

}  // namespace bev
