#include "pipeline/micro_recordings.h"

namespace bev {

void MicroRecordings::issue(const MicroWork& key, Stream stream, FunctionRef<void()> work) {
  if (!can_record_) {
    work();
    return;
  }
  if (known_.size() > kMostKnown) {
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

}  // namespace bev
