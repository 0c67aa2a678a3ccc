#include "comm/single_communicator.h"

#include "base/check.h"

namespace bev {

std::unique_ptr<Communicator> SingleCommunicator::split(std::span<const int> ranks) {
  BEV_CHECK(ranks.size() == 1 && ranks[0] == 0, Internal, "a world of one has one group");
  return std::make_unique<SingleCommunicator>();
}

void SingleCommunicator::do_all_gather(Exec& ex, ConstTensor shard, Tensor whole) {
  ex.device.copy_on(ex.stream, shard.data, whole.data, bytes_of(shard));
}

void SingleCommunicator::do_reduce_scatter(Exec& ex, ConstTensor whole, Tensor shard) {
  ex.device.copy_on(ex.stream, whole.data, shard.data, bytes_of(whole));
}

uint64_t SingleCommunicator::do_send(Exec&, ConstTensor, int, Channel) {
  throw Error(ErrorKind::Internal, "a single rank has nobody to send to");
}

void SingleCommunicator::do_recv(Exec&, Tensor, int, Channel) {
  throw Error(ErrorKind::Internal, "a single rank has nobody to receive from");
}

}  // namespace bev
