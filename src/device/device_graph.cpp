#include "device/device_graph.h"

#include "base/error.h"

namespace bev {

Recording Recording::of(Device& device, Stream stream, FunctionRef<void()> issue) {
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
