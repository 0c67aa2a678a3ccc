#include "comm/communicator.h"

#include <algorithm>

#include "base/check.h"

namespace bev {

namespace {

void check_rows(const char* call, const ConstTensor& shard, const ConstTensor& whole, int size) {
  BEV_CHECK(shard.dtype == whole.dtype && is_contiguous(shard) && is_contiguous(whole) &&
                shard.shape.elements() * size == whole.shape.elements(),
            Internal, "{}: shard {} of whole {} over {} ranks", call, to_string(shard.shape),
            to_string(whole.shape), size);
}

// Says what goes on while it lives. An error ends it too: the words belong to the communicator.
class Told {
 public:
  Told(Activity* activity, const char* what, size_t bytes, const std::string* peers)
      : activity_(activity) {
    if (activity_ != nullptr) activity_->begin(what, bytes, peers);
  }
  ~Told() {
    if (activity_ != nullptr) activity_->end();
  }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

 private:
  Activity* activity_;
};

}  // namespace

void Communicator::count(Exec& ex, double bytes) {
  bytes_sent_ += bytes;
  if (ex.cost != nullptr) ex.cost->bytes_sent += bytes;
}

void Communicator::tell(Activity& activity, std::string peers) {
  activity_ = &activity;
  peers_ = std::move(peers);
}

void Communicator::pass(Exec& ex, const char* what, size_t bytes,
                        FunctionRef<void(Exec& ex)> exchange) {
  if (size_ == 1) return exchange(ex);
  const Told told(activity_, what, bytes, &peers_);
  // What it is made of does not show for itself.
  Exec inner = ex;
  inner.trace = nullptr;
  inner.waits = nullptr;
  if (ex.trace != nullptr) ex.trace->begin(what, ex.stream);
  if (ex.waits != nullptr) ex.waits->begin(ex.stream);
  exchange(inner);
  if (ex.waits != nullptr) ex.waits->end(ex.stream);
  if (ex.trace != nullptr) ex.trace->end(ex.stream);
}

void Communicator::all_reduce(Exec& ex, Tensor inout, ReduceOp op) {
  BEV_CHECK(is_contiguous(inout), Internal, "all_reduce of a tensor with gaps");
  // A ring sends each byte twice, less the part a rank keeps.
  count(ex, 2.0 * static_cast<double>(bytes_of(inout)) * (size_ - 1) / size_);
  pass(ex, "all_reduce", bytes_of(inout), [&](Exec& inner) { do_all_reduce(inner, inout, op); });
}

void Communicator::all_gather(Exec& ex, ConstTensor shard, Tensor whole) {
  check_rows("all_gather", shard, whole, size_);
  count(ex, static_cast<double>(bytes_of(shard)) * (size_ - 1));
  pass(ex, "all_gather", bytes_of(whole), [&](Exec& inner) { do_all_gather(inner, shard, whole); });
}

void Communicator::reduce_scatter(Exec& ex, ConstTensor whole, Tensor shard) {
  check_rows("reduce_scatter", shard, whole, size_);
  count(ex, static_cast<double>(bytes_of(shard)) * (size_ - 1));
  pass(ex, "reduce_scatter", bytes_of(whole),
       [&](Exec& inner) { do_reduce_scatter(inner, whole, shard); });
}

void Communicator::broadcast(Exec& ex, Tensor inout, int root) {
  BEV_CHECK(root >= 0 && root < size_, Internal, "broadcast from {} of {}", root, size_);
  if (rank_ == root) count(ex, static_cast<double>(bytes_of(inout)) * (size_ - 1));
  pass(ex, "broadcast", bytes_of(inout), [&](Exec& inner) { do_broadcast(inner, inout, root); });
}

SendTicket Communicator::send(Exec& ex, ConstTensor tensor, int to, Channel channel) {
  BEV_CHECK(to >= 0 && to < size_ && to != rank_, Internal, "send from {} to {}", rank_, to);
  BEV_CHECK(is_contiguous(tensor), Internal, "send of a tensor with gaps");
  count(ex, static_cast<double>(bytes_of(tensor)));
  return {to, channel, do_send(ex, tensor, to, channel)};
}

void Communicator::wait_send(Exec& ex, const SendTicket& sent) {
  if (sent.present()) pass(ex, "send", 0, [&](Exec& inner) { do_await(inner, sent); });
}

void Communicator::recv(Exec& ex, Tensor tensor, int from, Channel channel) {
  BEV_CHECK(from >= 0 && from < size_ && from != rank_, Internal, "recv at {} from {}", rank_,
            from);
  BEV_CHECK(is_contiguous(tensor), Internal, "recv into a tensor with gaps");
  pass(ex, "recv", bytes_of(tensor), [&](Exec& inner) { do_recv(inner, tensor, from, channel); });
}

std::string broadcast_text(Communicator& ranks, const std::string& here, int root) {
  constexpr size_t kBytes = 7;  // of a number that is not negative
  const bool is_root = ranks.rank() == root;
  const auto size = static_cast<size_t>(
      ranks.all_reduce_max_host(is_root ? static_cast<int64_t>(here.size()) : 0));
  std::string text;
  while (text.size() < size) {
    uint64_t packed = 0;
    for (size_t i = 0; is_root && i < std::min(kBytes, size - text.size()); ++i)
      packed |= uint64_t{static_cast<unsigned char>(here[text.size() + i])} << (8 * i);
    packed = static_cast<uint64_t>(ranks.all_reduce_max_host(static_cast<int64_t>(packed)));
    for (size_t i = std::min(kBytes, size - text.size()); i > 0; --i, packed >>= 8)
      text.push_back(static_cast<char>(packed & 0xff));
  }
  return text;
}

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

std::unique_ptr<Communicator> PlanningCommunicator::split(std::span<const int> ranks) {
  const auto mine = std::find(ranks.begin(), ranks.end(), rank());
  BEV_CHECK(mine != ranks.end(), Internal, "rank {} splits off a group without itself", rank());
  return std::make_unique<PlanningCommunicator>(static_cast<int>(mine - ranks.begin()),
                                                static_cast<int>(ranks.size()));
}

}  // namespace bev
