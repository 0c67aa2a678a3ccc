// Communicators whose ranks are processes with a GPU each.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/cuda/nccl_pool.h"

namespace bev::cuda {

// Collectives are kernels on the stream of the Exec: the host goes on. Small agreements take the
// control connection.
class NcclCommunicator final : public Communicator {
 public:
  // `ranks`: of the world, this one at `rank`.
  NcclCommunicator(std::shared_ptr<NcclPool> links, std::vector<int> ranks, int rank);

  void connect_neighbours() override;
  int64_t all_reduce_max_host(int64_t here) override;
  void abort(const std::string& why) override;
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override;

  // bev::nccl_sum (comm/nccl_world.h).
  void library_sum(Exec& ex, Tensor inout);

 private:
  void do_all_reduce(Exec& ex, Tensor inout, ReduceOp op) override;
  void do_all_gather(Exec& ex, ConstTensor shard, Tensor whole, Counts bounds) override;
  void do_reduce_scatter(Exec& ex, ConstTensor whole, Counts bounds, Tensor shard) override;
  void do_all_to_all(Exec& ex, ConstTensor in, Counts to, Tensor out, Counts from) override;
  void do_broadcast(Exec& ex, Tensor inout, int root) override;
  uint64_t do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) override;
  void do_await(Exec& ex, const SendTicket& sent) override;
  void do_recv(Exec& ex, Tensor tensor, int from, Channel channel) override;
  void do_barrier(std::chrono::seconds limit) override;

  // A call of the whole group about `tensor`, unless that is empty.
  void collective(Exec& ex, const char* what, const ConstTensor& tensor,
                  FunctionRef<ncclResult_t(ncclComm_t, cudaStream_t)> issue);
  // Makes the calls of `issue` one operation.
  ncclResult_t grouped(FunctionRef<ncclResult_t()> issue) const;
  NcclComm& comm_for(const Exec& ex);
  cudaStream_t stream_of(const Exec& ex) const;
  NcclPipe& lane(int from, int to, Channel channel);

  std::shared_ptr<NcclPool> links_;
  std::vector<int> ranks_, ascending_;
  std::array<NcclComm*, 3> comms_{};  // by stream
};

// bev::make_nccl_world (comm/nccl_world.h) on a GPU.
std::unique_ptr<Communicator> make_nccl_world(CudaDevice& device, CoordinationClient& control,
                                              std::string& words, std::chrono::seconds limit);

}  // namespace bev::cuda
