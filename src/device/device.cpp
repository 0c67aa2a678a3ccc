#include "device/device.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "base/clock.h"

namespace bev {

std::byte* Device::allocate(size_t bytes, std::string_view purpose) {
  std::byte* data = do_allocate(bytes);
  ++allocations_;
  const auto entry = std::find_if(memory_.begin(), memory_.end(),
                                  [&](const MemoryUse& use) { return use.purpose == purpose; });
  if (entry != memory_.end()) {
    entry->bytes += bytes;
  } else {
    memory_.push_back({std::string(purpose), bytes});
  }
  return data;
}

void Device::release(std::byte* data, size_t bytes, std::string_view purpose) {
  do_release(data, bytes);
  for (MemoryUse& use : memory_) {
    if (use.purpose == purpose) use.bytes -= bytes;
  }
}

size_t Device::allocated_bytes() const {
  size_t total = 0;
  for (const MemoryUse& use : memory_) total += use.bytes;
  return total;
}

uint64_t Device::start_timer(int) { return static_cast<uint64_t>(1e9 * seconds_now()); }

double Device::seconds_between(uint64_t first, uint64_t second) {
  return 1e-9 * (static_cast<double>(second) - static_cast<double>(first));
}

std::byte* Device::allocate_pinned(size_t bytes) {
  return static_cast<std::byte*>(::operator new(bytes, std::align_val_t{64}));
}

void Device::release_pinned(std::byte* data, size_t) {
  ::operator delete(data, std::align_val_t{64});
}

void Device::upload_on(Stream, const std::byte* pinned, std::byte* device, size_t bytes) {
  upload(pinned, device, bytes);
}

void Device::download_on(Stream, const std::byte* device, std::byte* pinned, size_t bytes) {
  download(device, pinned, bytes);
}

Event Stream::record() const { return device_->record(index_); }
void Stream::wait(const Event& event) const { device_->wait(index_, event); }
void Stream::wait(const SharedEvent& event) const { device_->wait_for(index_, event); }
SharedEvent Stream::share() const { return device_->share(record()); }
void Stream::synchronize() const { device_->synchronize(index_); }

NullDevice::NullDevice(DeviceKind imitates, const OpTable& ops, const DevicePolicy& policy,
                       size_t workspace_total)
    : Device(ops, policy), imitates_(imitates) {
  if (workspace_total > 0) allocate(workspace_total, "workspace");
}

void DispatchLog::note(std::string_view op, std::string_view chosen, std::string_view refused) {
  if (!enabled_) return;
  const bool known = std::any_of(choices_.begin(), choices_.end(), [&](const Choice& c) {
    return c.op == op && c.chosen == chosen && c.refused == refused;
  });
  if (!known) choices_.push_back({std::string(op), std::string(chosen), std::string(refused)});
}

}  // namespace bev
