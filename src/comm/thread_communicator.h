// Ranks as threads of one process, on processors or on one GPU.
#pragma once

#include "base/function_ref.h"
#include "comm/thread_group.h"

namespace bev {

// Sums are made in the order of the ranks, in the accumulation type, and rounded once: all members
// get the same bits, whatever the timing.
class ThreadCommunicator final : public Communicator {
 public:
  // `limit`: nobody waits longer for a peer.
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank, ThreadGroup::Limit limit);
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override;
  int64_t largest(int64_t here) override;
  void abandon(const std::string& why) override { group_->abandon(rank(), why); }

 private:
  void do_all_reduce(Exec& ex, Tensor inout, ReduceOp op) override;
  void do_all_gather(Exec& ex, ConstTensor shard, Tensor whole) override;
  void do_reduce_scatter(Exec& ex, ConstTensor whole, Tensor shard) override;
  void do_broadcast(Exec& ex, Tensor inout, int root) override;
  uint64_t do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) override;
  void do_await(Exec& ex, const Sent& sent) override;
  void do_recv(Exec& ex, Tensor tensor, int from, Channel channel) override;
  void do_barrier(std::chrono::seconds limit) override;

  // A collective on t begins: from here on, in the order of the stream, what the others brought can
  // be read.
  void begin(Exec& ex, const char* name, const ConstTensor& t, int detail = 0);
  // From here on what the others have written so far can be read, and what they have read can be
  // overwritten.
  void meet(Exec& ex, const char* name);
  void wait(Exec& ex, const std::vector<ThreadGroup::Mark>& marks) const;
  // What the ranks brought: `count` elements of each, from `first` on.
  std::vector<ConstTensor> inputs(DType dtype, int64_t first, int64_t count) const;

  std::shared_ptr<ThreadGroup> group_;
  ThreadGroup::Limit limit_;
};

// Runs body(world) once on each of `size` threads and returns when all have ended. When one throws,
// the others are told at their next call or while they wait, and its exception is thrown again
// here.
void run_ranks(int size, ThreadGroup::Limit limit, FunctionRef<void(Communicator& world)> body);

}  // namespace bev
