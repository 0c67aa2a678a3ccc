// Device: where work runs and where bytes live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/choices.h"

namespace bev {

// Which implementation each op chose, and why others were refused.

class DispatchLog {
 public:
  struct Choice {
    std::string op, chosen, refused;
  };

  void enable() { enabled_ = true; }
  bool enabled() const { return enabled_; }

  // Keeps each distinct choice once, in order; nothing unless enabled. `refused`: "name: why; ...".
  void note(std::string_view op, std::string_view chosen, std::string_view refused = "");
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  bool enabled_ = false;
  std::vector<Choice> choices_;
};

// Stream and Event: the order of work on a device.

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

struct OpTable;
class ThreadPool;

// How much memory one purpose holds now.
struct MemoryUse {
  std::string purpose;
  size_t bytes = 0;
};

// What a user decides about how a device computes.
struct DevicePolicy {
  bool deterministic = false;  // two runs with the same cache give the same bits, at any cost
  bool tf32 = false;           // f32 GEMMs may round their operands to 10 bits
  bool autotunes = true;       // algorithms may be chosen by autotuning
  bool graphs = true;          // work that repeats may be launched as CUDA graphs
  std::string cache{};         // folder that remembers what was chosen; empty: none
};

class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual DeviceKind kind() const = 0;
  const OpTable& ops() const { return ops_; }
  const DevicePolicy& policy() const { return policy_; }
  DispatchLog& dispatch() { return dispatch_; }
  // The same for two runs that chose the same algorithms so far; 0 where libraries choose none.
  virtual uint64_t algorithm_hash() const { return 0; }

  // While a device autotunes, the results of ops are discarded: ops may repeat their work to find
  // the fastest algorithm. AutotuneScope begins and ends it.
  bool is_autotuning() const { return is_autotuning_; }
  // Result of the autotuning in one sentence; empty: nothing to report.
  const std::string& autotune_summary() const { return autotune_summary_; }

  // Whether calls return before their work is done.
  virtual bool is_asynchronous() const { return false; }
  Stream compute_stream() { return {*this, 0}; }
  Stream copy_stream() { return {*this, 1}; }
  // Collectives of the shard groups that overlap with computation.
  Stream comm_stream() { return {*this, 2}; }
  // Collectives of a tensor region that overlap with its GEMMs: they must not wait for buckets.
  Stream tensor_stream() { return {*this, 3}; }
  // Whether DeviceGraph (device/device_graph.h) may work here.
  virtual bool supports_graphs() const { return false; }
  // Blocks the host until the event has passed.
  virtual void finish(Event) {}

  // Owned by the caller until release(). Throws a Device error when there is not that much.
  // The null device counts and returns null.
  std::byte* allocate(size_t bytes, std::string_view purpose);
  void release(std::byte* data, size_t bytes, std::string_view purpose);

  // Between host memory and this device's; complete on return.
  virtual void upload(const void* host, std::byte* device, size_t bytes) = 0;
  virtual void download(const std::byte* device, void* host, size_t bytes) = 0;

  // Host memory that copies in the order of a stream may use (PinnedBuffer owns it).
  virtual std::byte* allocate_pinned(size_t bytes);
  virtual void release_pinned(std::byte* data, size_t bytes);
  // In the order of the stream; the host memory is pinned and stays until the stream has passed.
  virtual void upload_on(Stream stream, const std::byte* pinned, std::byte* device, size_t bytes);
  virtual void download_on(Stream stream, const std::byte* device, std::byte* pinned, size_t bytes);

  // Between two places in the memory of devices of this kind, in the order of the stream.
  virtual void copy_on(Stream stream, const std::byte* from, std::byte* to, size_t bytes) = 0;

  size_t allocated_bytes() const;
  size_t allocations() const { return allocations_; }  // ever made; a step makes none
  const std::vector<MemoryUse>& memory() const { return memory_; }

 protected:
  explicit Device(const OpTable& ops, const DevicePolicy& policy = {})
      : ops_(ops), policy_(policy) {}

 private:
  friend class Stream;
  friend class TimerEvent;
  friend class DeviceGraph;
  friend class AutotuneScope;
  virtual std::string end_autotune() { return {}; }
  virtual std::byte* do_allocate(size_t bytes) = 0;
  virtual void do_release(std::byte* data, size_t bytes) = 0;
  virtual Event record(int stream) = 0;
  virtual void wait(int stream, Event event) = 0;
  virtual SharedEvent share(Event) { return {}; }
  virtual void wait_for(int, const SharedEvent&) {}
  virtual void synchronize(int stream) = 0;
  // A timer that stands at the end of what the stream was given so far; on host devices the clock.
  virtual uint64_t start_timer(int stream);
  virtual double seconds_between(uint64_t first, uint64_t second);
  virtual void release_timer(uint64_t) {}
  virtual bool begin_capture(int) { return false; }
  virtual uint64_t end_capture(int) { return 0; }  // 0: it cannot be launched
  virtual void launch_graph(int, uint64_t) {}
  virtual void release_graph(uint64_t) {}

  const OpTable& ops_;
  DevicePolicy policy_;
  DispatchLog dispatch_;
  std::vector<MemoryUse> memory_;
  size_t allocations_ = 0;
  bool is_autotuning_ = false;
  std::string autotune_summary_;
};

// The reference and cpu devices: host memory, threads of their own.
class HostDevice : public Device {
 public:
  // `workspace_bytes` per thread are allocated at once and belong to the ops of the backend.
  HostDevice(DeviceKind kind, const OpTable& ops, int threads, size_t workspace_bytes);
  ~HostDevice() override;

  DeviceKind kind() const override { return kind_; }
  ThreadPool& threads() { return *pool_; }
  std::byte* workspace(int thread) const;  // 64-byte aligned
  size_t workspace_bytes() const { return workspace_bytes_; }

  void upload(const void* host, std::byte* device, size_t bytes) override;
  void download(const std::byte* device, void* host, size_t bytes) override;
  void copy_on(Stream stream, const std::byte* from, std::byte* to, size_t bytes) override;

 private:
  std::byte* do_allocate(size_t bytes) override;
  void do_release(std::byte* data, size_t bytes) override;
  Event record(int) override { return {}; }
  void wait(int, Event) override {}
  void synchronize(int) override {}

  DeviceKind kind_;
  std::unique_ptr<ThreadPool> pool_;
  size_t workspace_bytes_;
  std::byte* workspace_ = nullptr;
};

// Touches no memory: planning. Counts what the imitated device would allocate.
class NullDevice : public Device {
 public:
  NullDevice(DeviceKind imitates, const OpTable& ops, const DevicePolicy& policy,
             size_t workspace_total);

  DeviceKind kind() const override { return DeviceKind::Null; }
  DeviceKind imitates() const { return imitates_; }

  void upload(const void*, std::byte*, size_t) override {}
  void download(const std::byte*, void*, size_t) override {}
  void copy_on(Stream, const std::byte*, std::byte*, size_t) override {}

 private:
  std::byte* do_allocate(size_t) override { return nullptr; }
  void do_release(std::byte*, size_t) override {}
  Event record(int) override { return {}; }
  void wait(int, Event) override {}
  void synchronize(int) override {}

  DeviceKind imitates_;
};

// The time in which a device autotunes (Device::is_autotuning).

class AutotuneScope {
 public:
  explicit AutotuneScope(Device& device) : device_(device) { device_.is_autotuning_ = true; }
  ~AutotuneScope() { device_.is_autotuning_ = false; }
  AutotuneScope(const AutotuneScope&) = delete;
  AutotuneScope& operator=(const AutotuneScope&) = delete;

  // Keeps the result. Without this call it is lost with the scope.
  void finish() { device_.autotune_summary_ = device_.end_autotune(); }

 private:
  Device& device_;
};

}  // namespace bev
