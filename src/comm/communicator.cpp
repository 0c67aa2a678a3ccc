#include "comm/communicator.h"

#include "base/check.h"

namespace bev {

namespace {

void check_rows(const char* call, const ConstTensor& shard, const ConstTensor& whole, int size) {
  BEV_CHECK(shard.dtype == whole.dtype && is_contiguous(shard) && is_contiguous(whole) &&
                shard.shape.elements() * size == whole.shape.elements(),
            Internal, "{}: shard {} of whole {} over {} ranks", call, to_string(shard.shape),
            to_string(whole.shape), size);
}

}  // namespace

void Communicator::count(Exec& ex, double bytes) {
  bytes_sent_ += bytes;
  if (ex.cost != nullptr) ex.cost->bytes_sent += bytes;
}

void Communicator::tell(Activity& activity, std::string peers) {
  activity_ = &activity;
  peers_ = std::move(peers);
}

void Communicator::pass(Exec& ex, const char* what, size_t bytes, FunctionRef<void()> exchange) {
  if (size_ == 1) return exchange();
  if (activity_ != nullptr) activity_->begin(what, bytes, &peers_);
  if (ex.waits != nullptr) ex.waits->begin(ex.stream);
  exchange();
  if (ex.waits != nullptr) ex.waits->end(ex.stream);
  if (activity_ != nullptr) activity_->end();
}

void Communicator::all_reduce(Exec& ex, Tensor inout, ReduceOp op) {
  BEV_CHECK(is_contiguous(inout), Internal, "all_reduce of a tensor with gaps");
  // A ring sends each byte twice, less the part a rank keeps.
  count(ex, 2.0 * static_cast<double>(bytes_of(inout)) * (size_ - 1) / size_);
  pass(ex, "all_reduce", bytes_of(inout), [&] { do_all_reduce(ex, inout, op); });
}

void Communicator::all_gather(Exec& ex, ConstTensor shard, Tensor whole) {
  check_rows("all_gather", shard, whole, size_);
  count(ex, static_cast<double>(bytes_of(shard)) * (size_ - 1));
  pass(ex, "all_gather", bytes_of(whole), [&] { do_all_gather(ex, shard, whole); });
}

void Communicator::reduce_scatter(Exec& ex, ConstTensor whole, Tensor shard) {
  check_rows("reduce_scatter", shard, whole, size_);
  count(ex, static_cast<double>(bytes_of(shard)) * (size_ - 1));
  pass(ex, "reduce_scatter", bytes_of(whole), [&] { do_reduce_scatter(ex, whole, shard); });
}

void Communicator::broadcast(Exec& ex, Tensor inout, int root) {
  BEV_CHECK(root >= 0 && root < size_, Internal, "broadcast from {} of {}", root, size_);
  if (rank_ == root) count(ex, static_cast<double>(bytes_of(inout)) * (size_ - 1));
  pass(ex, "broadcast", bytes_of(inout), [&] { do_broadcast(ex, inout, root); });
}

Sent Communicator::send(Exec& ex, ConstTensor tensor, int to, Channel channel) {
  BEV_CHECK(to >= 0 && to < size_ && to != rank_, Internal, "send from {} to {}", rank_, to);
  BEV_CHECK(is_contiguous(tensor), Internal, "send of a tensor with gaps");
  count(ex, static_cast<double>(bytes_of(tensor)));
  return {to, channel, do_send(ex, tensor, to, channel)};
}

void Communicator::await(Exec& ex, const Sent& sent) {
  if (sent.present()) pass(ex, "send", 0, [&] { do_await(ex, sent); });
}

void Communicator::recv(Exec& ex, Tensor tensor, int from, Channel channel) {
  BEV_CHECK(from >= 0 && from < size_ && from != rank_, Internal, "recv at {} from {}", rank_,
            from);
  BEV_CHECK(is_contiguous(tensor), Internal, "recv into a tensor with gaps");
  pass(ex, "recv", bytes_of(tensor), [&] { do_recv(ex, tensor, from, channel); });
}

}  // namespace bev
