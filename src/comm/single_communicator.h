// The world of one rank: ordinary runs on one device.
#pragma once

#include "comm/communicator.h"

namespace bev {

class SingleCommunicator final : public Communicator {
 public:
  SingleCommunicator() : Communicator(0, 1) {}
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override;
  int64_t largest(int64_t here) override { return here; }

 private:
  void do_all_reduce(Exec&, Tensor, ReduceOp) override {}
  void do_all_gather(Exec& ex, ConstTensor shard, Tensor whole) override;
  void do_reduce_scatter(Exec& ex, ConstTensor whole, Tensor shard) override;
  void do_broadcast(Exec&, Tensor, int) override {}
  uint64_t do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) override;
  void do_await(Exec&, const Sent&) override {}
  void do_recv(Exec& ex, Tensor tensor, int from, Channel channel) override;
  void do_barrier(std::chrono::seconds) override {}
};

}  // namespace bev
