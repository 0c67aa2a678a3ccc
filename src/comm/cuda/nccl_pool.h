// All NCCL communicators of this process: made when first needed, watched, and ended together.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "comm/communicator.h"
#include "comm/cuda/nccl_library.h"
#include "coordination/coordination_client.h"
#include "device/cuda/cuda_device.h"

namespace bev::cuda {

// One communicator of NCCL's.
struct NcclComm {
  // A call that was under way when it was last looked.
  struct PendingCall {
    const char* what = nullptr;  // null: none
    uint64_t number = 0;
    std::chrono::steady_clock::time_point since{};
    cudaEvent_t done = nullptr;
  };

  std::vector<int> ranks;  // of the world, in the order of NCCL's own numbers
  ncclComm_t handle = nullptr;
  uint64_t calls = 0;
  PendingCall watched{};
};

// A pipe from one rank to another, with a communicator of its own: NCCL does the operations of one
// communicator one after the other, and a send lasts until the receiver has come. For the same
// reason the sender has a stream of its own for it.
class NcclPipe {
 public:
  NcclPipe() = default;
  NcclPipe(const NcclPipe&) = delete;
  NcclPipe& operator=(const NcclPipe&) = delete;
  ~NcclPipe();

  // Its numbers: the sender is 0, the receiver 1.
  static constexpr int kSender = 0, kReceiver = 1;
  NcclComm* comm = nullptr;
  cudaStream_t stream = nullptr;  // of the sender; the receiver has none

  // What was issued on the stream so far ends with the send of the number that is returned.
  uint64_t mark();
  // `waiting` goes on when that send is done. Once for each number.
  void await(cudaStream_t waiting, uint64_t number);

 private:
  struct Posted {
    uint64_t number;
    cudaEvent_t done;
  };
  uint64_t sent_ = 0;
  std::vector<Posted> posted_;
  std::vector<cudaEvent_t> idle_;
};

// Used by the thread of the rank. A thread of its own looks for errors that NCCL finds later, and
// for calls that do not end, and blames them.
//
// Communicators are made when they are first used, by all their members at the same call. That
// blocks the host until all have come, and so does the first collective of each kind. It cannot
// deadlock: ranks as threads meet on the host in every collective and every recv, and the programs
// of the ranks end there. Only a send may come at any time; its lane is therefore made and used
// once in open_pipes(), after which a send blocks nobody.
class NcclPool {
 public:
  // All ranks of the job together. `limit`: no call lasts longer.
  NcclPool(CudaDevice& device, CoordinationClient& control, std::chrono::seconds limit);
  // After a failure, or while an exception is on its way, everything is broken off.
  ~NcclPool();
  NcclPool(const NcclPool&) = delete;
  NcclPool& operator=(const NcclPool&) = delete;

  const NcclLibrary& nccl() const { return nccl_; }
  CudaDevice& device() const { return device_; }
  CoordinationClient& control() const { return control_; }
  const std::string& gpu() const { return gpu_; }  // "0000:18:00.0"

  // Groups of the same ranks share a communicator, but not across streams: it would couple them.
  NcclComm& group(const std::vector<int>& ranks, int stream);
  // Ranks of the world, of which this one is one. Where open_pipes() did not make it, its first
  // send waits on the host for the first recv.
  NcclPipe& lane(int from, int to, Channel channel);

  // Makes a call that moves `tensor` on `stream`. What NCCL finds wrong with it is blamed.
  void call(NcclComm& comm, const char* what, const ConstTensor& tensor, cudaStream_t stream,
            FunctionRef<ncclResult_t(ncclComm_t)> issue);

  // Breaks off what is under way; all further calls fail with these words.
  void stop(const std::string& why);

 private:
  using LaneKey = std::tuple<int, int, Channel>;

  void exchange_peer_info();
  ncclUniqueId id_under(const std::string& key, bool is_first);
  NcclComm& join(std::vector<int> ranks, ncclUniqueId id, int most_ctas);
  void open(NcclPipe& lane, int from, int to, Channel channel);
  // The result of a call that may still be in progress.
  ncclResult_t settled(ncclComm_t comm, ncclResult_t result) const;
  [[noreturn]] void fail(const std::string& what_happened);
  void watch();
  // What is wrong, in words; empty: nothing. REQUIRES: mutex_ is held.
  std::string look_at(NcclComm& comm) const;
  void check_alive() const;
  void abort_all();

  CudaDevice& device_;
  CoordinationClient& control_;
  const std::chrono::seconds limit_;
  NcclLibrary nccl_;
  const int exceptions_at_start_;
  int ordinal_ = 0;
  std::string gpu_;
  std::string prefix_;            // of keys: other worlds of the job have others
  cudaStream_t first_ = nullptr;  // the first use of lanes
  std::byte* one_byte_ = nullptr;

  // Guards handles, failure_ and calls of NCCL: nothing is aborted while it is in use.
  mutable std::mutex mutex_;
  std::condition_variable bell_;
  bool is_ending_ = false;
  std::string failure_;
  std::deque<NcclComm> comms_;  // in the order in which they were made
  std::map<std::pair<std::vector<int>, int>, NcclComm*> groups_;
  std::map<LaneKey, NcclPipe> lanes_;
  std::thread watcher_;
};

}  // namespace bev::cuda
