// DeviceGraph: the work of a stream, captured once and launched repeatedly with the same kernels,
// arguments and memory. GraphCache: graphs by key.
#pragma once

#include <map>
#include <utility>

#include "base/error.h"
#include "base/function_ref.h"
#include "device/device.h"

namespace bev {

// Has one owner; the device must outlive it.
class DeviceGraph {
 public:
  DeviceGraph() = default;  // absent
  // Captures the work that `issue` issues on the stream, without running it. Absent if the device
  // cannot capture it or `issue` throws an Error; other exceptions propagate.
  static DeviceGraph capture(Device& device, Stream stream, FunctionRef<void()> issue);
  DeviceGraph(DeviceGraph&& other) noexcept { swap(other); }
  DeviceGraph& operator=(DeviceGraph&& other) noexcept {
    DeviceGraph taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~DeviceGraph() {
    if (device_ != nullptr) device_->release_graph(handle_);
  }

  bool present() const { return device_ != nullptr; }
  void launch(Stream stream) const { device_->launch_graph(stream.index(), handle_); }

 private:
  DeviceGraph(Device& device, uint64_t handle) : device_(&device), handle_(handle) {}
  void swap(DeviceGraph& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
  }

  Device* device_ = nullptr;
  uint64_t handle_ = 0;
};

// Runs repeated work as graphs on devices that support them: hundreds of kernels are launched
// without the host, with smaller gaps.

// Work with equal keys must have equal kernels with equal arguments.
template <class Key>
class GraphCache {
 public:
  // Drops all graphs when more than `most` keys are known.
  GraphCache(Device& device, size_t most) : device_(device), most_(most) {}

  // Runs the work: the first call with a key runs it eagerly, which loads what it needs; the second
  // captures it; all later ones launch the graph. If a capture fails, `work` is called a second
  // time, and no work is captured from then on.
  void run(const Key& key, Stream stream, FunctionRef<void()> work) {
    if (!can_capture_) {
      work();
      return;
    }
    if (known_.size() > most_) {
      stream.synchronize();
      known_.clear();
    }
    Known& known = known_[key];
    if (!known.has_run) {
      known.has_run = true;
      work();
      return;
    }
    if (!known.graph.present()) known.graph = DeviceGraph::capture(device_, stream, work);
    if (known.graph.present()) {
      known.graph.launch(stream);
      ++launches_;
    } else {
      can_capture_ = false;
      work();
    }
  }
  int64_t launches() const { return launches_; }

 private:
  struct Known {
    bool has_run = false;
    DeviceGraph graph{};
  };

  Device& device_;
  size_t most_;
  std::map<Key, Known> known_;
  bool can_capture_ = true;  // so far
  int64_t launches_ = 0;
};

inline DeviceGraph DeviceGraph::capture(Device& device, Stream stream, FunctionRef<void()> issue) {
  if (!device.begin_capture(stream.index())) return {};
  bool complete = true;
  try {
    issue();
  } catch (const Error&) {
    complete = false;
  } catch (...) {
    device.end_capture(stream.index());
    throw;
  }
  const uint64_t handle = device.end_capture(stream.index());
  if (handle == 0) return {};
  DeviceGraph graph(device, handle);
  return complete ? std::move(graph) : DeviceGraph{};
}

}  // namespace bev
