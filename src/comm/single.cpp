#include "comm/single.h"

#include <cstring>

#include "base/check.h"

namespace bev {

namespace {

// Host memory only: a device with memory of its own brings a communicator of its own.
void copy_bytes(const ConstTensor& from, const Tensor& to) {
  if (to.data != nullptr && to.data != from.data) std::memcpy(to.data, from.data, bytes_of(from));
}

}  // namespace

std::unique_ptr<Communicator> SingleCommunicator::split(std::span<const int> ranks) {
  BEV_CHECK(ranks.size() == 1 && ranks[0] == 0, Internal, "a world of one has one group");
  return std::make_unique<SingleCommunicator>();
}

void SingleCommunicator::do_all_gather(Exec&, ConstTensor shard, Tensor whole) {
  copy_bytes(shard, whole);
}

void SingleCommunicator::do_reduce_scatter(Exec&, ConstTensor whole, Tensor shard) {
  copy_bytes(whole, shard);
}

uint64_t SingleCommunicator::do_send(Exec&, ConstTensor, int, Channel) {
  throw Error(ErrorKind::Internal, "a single rank has nobody to send to");
}

void SingleCommunicator::do_recv(Exec&, Tensor, int, Channel) {
  throw Error(ErrorKind::Internal, "a single rank has nobody to receive from");
}

}  // namespace bev
