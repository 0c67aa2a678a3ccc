// What libraries like MPI and Gloo give: bytes among processes, from host memory to host memory.
// Each library is a plug-in, loaded when it is wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "coordination/key_value_store.h"

namespace bev {

// Some ranks of a job. Calls are made by one thread, by all members in the same order, and throw
// std::runtime_error with the library's words when the library reports an error.
class HostGroup {
 public:
  virtual ~HostGroup() = default;
  HostGroup(const HostGroup&) = delete;
  HostGroup& operator=(const HostGroup&) = delete;

  // Posted: member m gets out[m] from this one and gives in[m]; this one's own entries are not
  // looked at. Returns at once, with a number for await().
  virtual uint64_t all_to_all(std::span<const std::span<const std::byte>> out,
                              std::span<const std::span<std::byte>> in) = 0;
  // Member m's bytes[m] bytes, packed in the order of the members. This one's may already lie in
  // their place.
  virtual void all_gather(const std::byte* own, std::byte* all, std::span<const size_t> bytes) = 0;
  virtual void broadcast(std::byte* data, size_t bytes, int root) = 0;

  // Posted: returns at once, with a number for await(). Messages of a lane between two members
  // arrive in order.
  virtual uint64_t send(const std::byte* data, size_t bytes, int to, int lane) = 0;
  // What was posted under the number is done. Once for each.
  virtual void await(uint64_t number) = 0;
  virtual void recv(std::byte* data, size_t bytes, int from, int lane) = 0;

  // The library's own sum, which ours is compared with (bench comm).
  virtual void sum(float* inout, size_t count) = 0;

 protected:
  HostGroup() = default;
};

class HostEngine {
 public:
  virtual ~HostEngine() = default;
  HostEngine(const HostEngine&) = delete;
  HostEngine& operator=(const HostEngine&) = delete;

  // "Open MPI 4.1.4", "Gloo over TCP at 10.0.0.7 (eth0)"
  virtual std::string describe() const = 0;
  // The named ranks of the job make it together. `name` is theirs alone.
  virtual std::unique_ptr<HostGroup> group(std::span<const int> ranks, const std::string& name) = 0;

 protected:
  HostEngine() = default;
};

struct HostEngineOptions {
  int rank = 0, size = 1;
  KeyValueStore* store = nullptr;  // of the job; Gloo meets through it
  std::string address;             // of this machine, to bind to; empty: what the library chooses
  double timeout_seconds = 600;
};

// What a plug-in exports under kHostEngineEntry.
using MakeHostEngine = HostEngine* (*)(const HostEngineOptions& options);
inline constexpr const char* kHostEngineEntry = "bevatron_make_host_engine";

}  // namespace bev
