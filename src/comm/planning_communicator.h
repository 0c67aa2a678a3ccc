// The communicator of a plan: a rank of a layout whose peers do not exist. Nothing moves; the base
// class counts what would be sent.
#pragma once

#include "comm/communicator.h"

namespace bev {

class PlanningCommunicator final : public Communicator {
 public:
  PlanningCommunicator(int rank, int size) : Communicator(rank, size) {}
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override;
  int64_t all_reduce_max_host(int64_t here) override { return here; }

 private:
  void do_all_reduce(Exec&, Tensor, ReduceOp) override {}
  void do_all_gather(Exec&, ConstTensor, Tensor, Counts) override {}
  void do_reduce_scatter(Exec&, ConstTensor, Counts, Tensor) override {}
  void do_all_to_all(Exec&, ConstTensor, Counts, Tensor, Counts) override {}
  void do_broadcast(Exec&, Tensor, int) override {}
  uint64_t do_send(Exec&, ConstTensor, int, Channel) override { return 0; }
  void do_await(Exec&, const SendTicket&) override {}
  void do_recv(Exec&, Tensor, int, Channel) override {}
  void do_barrier(std::chrono::seconds) override {}
};

}  // namespace bev
