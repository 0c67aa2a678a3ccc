// Stream and Event: the order of work on a device.
#pragma once

#include <cstdint>
#include <memory>

namespace bev {

class Device;

// A point of the work of a stream; 0: none, as always on host devices.
struct Event {
  uint64_t handle = 0;
};

// An event that streams of other devices of the same kind may wait for, also when the device that
// recorded it is gone. Empty on host devices.
struct SharedEvent {
  std::shared_ptr<const void> owner{};
  void* handle = nullptr;
};

// An ordered queue of work. Work on two streams is unordered except through events. On host devices
// every call completes before it returns.
class Stream {
 public:
  Stream(Device& device, int index) : device_(&device), index_(index) {}
  Event record() const;           // done when everything issued so far is done
  void wait(const Event&) const;  // what is issued later starts after the event
  void wait(const SharedEvent&) const;
  SharedEvent share() const;  // record(), for others to wait for
  void synchronize() const;   // blocks the host; for step ends and tests
  int index() const { return index_; }

 private:
  Device* device_;
  int index_;
};

}  // namespace bev
