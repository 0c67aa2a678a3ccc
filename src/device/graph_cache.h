// Work that repeats and is issued at once, on devices that can record it: hundreds of kernels
// follow each other without the host, and with smaller gaps.
#pragma once

#include <map>

#include "device/device_graph.h"

namespace bev {

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

}  // namespace bev
