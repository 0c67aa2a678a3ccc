// Work of a stream that was recorded once and is issued again at once: the same kernels, with the
// same arguments, on the same memory.
#pragma once

#include <map>
#include <utility>

#include "base/error.h"
#include "base/function_ref.h"
#include "device/device.h"

namespace bev {

// Has one owner; the device must outlive it.
class Recording {
 public:
  Recording() = default;  // absent
  // What `issue` issues on the stream is recorded and not done. Absent where that cannot be
  // recorded, for whatever reason: `issue` itself may have thrown.
  static Recording of(Device& device, Stream stream, FunctionRef<void()> issue);
  Recording(Recording&& other) noexcept { swap(other); }
  Recording& operator=(Recording&& other) noexcept {
    Recording taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~Recording() {
    if (device_ != nullptr) device_->release_recording(handle_);
  }

  bool present() const { return device_ != nullptr; }
  void replay(Stream stream) const { device_->replay(stream.index(), handle_); }

 private:
  Recording(Device& device, uint64_t handle) : device_(&device), handle_(handle) {}
  void swap(Recording& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
  }

  Device* device_ = nullptr;
  uint64_t handle_ = 0;
};

// Work that repeats and is issued at once, on devices that can record it: hundreds of kernels
// follow each other without the host, and with smaller gaps.

// Equal keys: equal kernels with equal arguments.
template <class Key>
class RecordedWork {
 public:
  // Old keys are forgotten when more than `most` are known.
  RecordedWork(Device& device, size_t most) : device_(device), most_(most) {}

  // Issues the work: as it is at first, which loads what it needs; then recorded, then replayed.
  // `work` may be called twice, when it turns out that it cannot be recorded.
  void issue(const Key& key, Stream stream, FunctionRef<void()> work) {
    if (!can_record_) {
      work();
      return;
    }
    if (known_.size() > most_) {
      stream.synchronize();
      known_.clear();
    }
    Known& known = known_[key];
    if (!known.was_issued) {
      known.was_issued = true;
      work();
      return;
    }
    if (!known.recording.present()) known.recording = Recording::of(device_, stream, work);
    if (known.recording.present()) {
      known.recording.replay(stream);
      ++replays_;
    } else {
      can_record_ = false;
      work();
    }
  }
  int64_t replays() const { return replays_; }

 private:
  struct Known {
    bool was_issued = false;
    Recording recording{};
  };

  Device& device_;
  size_t most_;
  std::map<Key, Known> known_;
  bool can_record_ = true;  // so far
  int64_t replays_ = 0;
};

inline Recording Recording::of(Device& device, Stream stream, FunctionRef<void()> issue) {
  if (!device.begin_recording(stream.index())) return {};
  bool complete = true;
  try {
    issue();
  } catch (const Error&) {
    complete = false;
  } catch (...) {
    device.end_recording(stream.index());
    throw;
  }
  const uint64_t handle = device.end_recording(stream.index());
  if (handle == 0) return {};
  Recording recording(device, handle);
  return complete ? std::move(recording) : Recording{};
}

}  // namespace bev
