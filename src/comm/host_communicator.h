// Ranks as processes, on tensors in host memory.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "comm/host_engine.h"
#include "coordination/coordination_client.h"

namespace bev {

// Over an engine that only moves bytes. Sums are made here, in the order of the ranks, in the
// accumulation type, and rounded once: all members get the same bits, and those that ranks as
// threads get. Tensors are read and written in place; what others bring to a sum passes through a
// staging memory of fixed size, which all groups of a process share.
//
// Calls are complete on return, save for send(). An error of the library is blamed on the control
// connection, which knows whether a rank is gone.
class HostCommunicator final : public Communicator {
 public:
  // All ranks of the job, which make it together, more than one. `engine` and `control` outlive it
  // and what is split off.
  HostCommunicator(HostEngine& engine, CoordinationClient& control);
  ~HostCommunicator() override;

  std::unique_ptr<Communicator> split(std::span<const int> ranks) override;
  int64_t all_reduce_max_host(int64_t here) override;
  void abort(const std::string& why) override;

  // The sum of an f32 tensor as the library makes it, which ours is compared with (bench comm).
  void library_sum(Exec& ex, Tensor inout);

 private:
  struct Process;
  HostCommunicator(std::shared_ptr<Process> process, std::vector<int> world_ranks, int rank);

  void do_all_reduce(Exec& ex, Tensor inout, ReduceOp op) override;
  void do_all_gather(Exec& ex, ConstTensor shard, Tensor whole, Counts bounds) override;
  void do_reduce_scatter(Exec& ex, ConstTensor whole, Counts bounds, Tensor shard) override;
  void do_all_to_all(Exec& ex, ConstTensor in, Counts to, Tensor out, Counts from) override;
  void do_broadcast(Exec& ex, Tensor inout, int root) override;
  uint64_t do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) override;
  void do_await(Exec& ex, const SendTicket& sent) override;
  void do_recv(Exec& ex, Tensor tensor, int from, Channel channel) override;
  void do_barrier(std::chrono::seconds limit) override;

  // Runs `call`, which moves bytes by the library.
  template <class F>
  void reduce_bucket(Exec& ex, const char* what, size_t bytes, const F& call);
  // Everybody gets everything and combines it all: one exchange instead of two.
  void reduce_at_once(Exec& ex, Tensor inout, ReduceOp op);
  // Member r gets out_[r], and what the others have for this one, `bytes` each, comes to a place in
  // staging memory; there are several, so that some are filled while one is read.
  uint64_t begin_exchange(size_t place, size_t bytes);
  // `result` is `own` combined with what has come to that place.
  void combine_staged(Exec& ex, size_t place, ConstTensor own, Tensor result, ReduceOp op);
  // Of a chunk that all members divide.
  Tensor slice_of(const Tensor& chunk, int member) const;
  uint64_t begin_scatter(size_t place, const Tensor& chunk);
  uint64_t begin_gather(const Tensor& chunk);

  std::shared_ptr<Process> process_;
  std::vector<int> world_ranks_;
  std::vector<int> ascending_;  // the same, for the control connection
  std::string peers_;
  std::unique_ptr<HostGroup> group_;
  // Of one call.
  std::vector<size_t> bytes_;
  std::vector<ConstTensor> parts_;
  std::vector<std::span<const std::byte>> out_;
  std::vector<std::span<std::byte>> in_;
};

}  // namespace bev
