// One rank of any number that exist only in thought: planning. Nothing moves; what would be sent is
// counted by the checked front.
#pragma once

#include "comm/communicator.h"

namespace bev {

class PhantomCommunicator final : public Communicator {
 public:
  PhantomCommunicator(int rank, int size) : Communicator(rank, size) {}
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override;
  int64_t largest(int64_t here) override { return here; }

 private:
  void do_all_reduce(Exec&, Tensor, ReduceOp) override {}
  void do_all_gather(Exec&, ConstTensor, Tensor) override {}
  void do_reduce_scatter(Exec&, ConstTensor, Tensor) override {}
  void do_broadcast(Exec&, Tensor, int) override {}
  uint64_t do_send(Exec&, ConstTensor, int, Channel) override { return 0; }
  void do_await(Exec&, const Sent&) override {}
  void do_recv(Exec&, Tensor, int, Channel) override {}
  void do_barrier(std::chrono::seconds) override {}
};

}  // namespace bev
