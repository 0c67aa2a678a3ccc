#include "comm/cuda/nccl_communicator.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "coordination/rank_text.h"
#include "device/cuda/cuda_device.h"

namespace bev::cuda {

namespace {

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return ncclFloat64;
    case DType::f32: return ncclFloat32;
    case DType::bf16: return ncclBfloat16;
    case DType::f16: return ncclFloat16;
    case DType::i64: return ncclInt64;
    case DType::i32: return ncclInt32;
    case DType::u8: return ncclUint8;
  }
  throw Error(ErrorKind::Internal, "a dtype without a name in NCCL");
}

ncclRedOp_t op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum: return ncclSum;
    case ReduceOp::Max: return ncclMax;
    case ReduceOp::Min: return ncclMin;
  }
  throw Error(ErrorKind::Internal, "a reduction without a name in NCCL");
}

size_t count_of(const ConstTensor& t) { return static_cast<size_t>(t.shape.elements()); }

bool are_even(Communicator::Counts bounds) {
  for (size_t r = 1; r < bounds.size(); ++r) {
    if (bounds[r] - bounds[r - 1] != bounds[1] - bounds[0]) return false;
  }
  return true;
}

// Calls f(member, its part of t) for the parts that are not empty, until one fails.
template <class T, class F>
ncclResult_t each_part(const T& t, Communicator::Counts bounds, const F& f) {
  for (size_t r = 0; r + 1 < bounds.size(); ++r) {
    if (bounds[r] == bounds[r + 1]) continue;
    const ncclResult_t result =
        f(static_cast<int>(r), slice(t, 0, bounds[r], bounds[r + 1] - bounds[r]));
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

std::vector<int> sorted(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::string peer_words(std::vector<int> ranks, int here) {
  ranks.erase(ranks.begin() + here);
  return ranks.empty() ? "nobody" : ranks_text(ranks);
}

// Says what this rank is doing until it goes away.
class Doing {
 public:
  Doing(Activity& activity, const char* what, std::string peers)
      : activity_(activity), peers_(std::move(peers)) {
    activity_.begin(what, 0, &peers_);
  }
  ~Doing() { activity_.end(); }
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

 private:
  Activity& activity_;
  std::string peers_;
};

}  // namespace

NcclCommunicator::NcclCommunicator(std::shared_ptr<NcclPool> links, std::vector<int> ranks,
                                   int rank)
    : Communicator(rank, static_cast<int>(ranks.size())),
      links_(std::move(links)),
      ranks_(std::move(ranks)),
      ascending_(sorted(ranks_)) {
  report_to(links_->control().activity(), peer_words(ranks_, rank));
}

std::unique_ptr<Communicator> NcclCommunicator::split(std::span<const int> ranks) {
  const auto mine = std::find(ranks.begin(), ranks.end(), rank());
  BEV_CHECK(mine != ranks.end(), Internal, "rank {} splits off a group without itself", rank());
  std::vector<int> members;
  for (const int each : ranks) {
    BEV_CHECK(each >= 0 && each < size(), Internal, "a group of {} has no rank {}", size(), each);
    members.push_back(ranks_[static_cast<size_t>(each)]);
  }
  return std::make_unique<NcclCommunicator>(links_, std::move(members),
                                            static_cast<int>(mine - ranks.begin()));
}

cudaStream_t NcclCommunicator::stream_of(const Exec& ex) const {
  return links_->device().stream(ex.stream.index());
}

NcclComm& NcclCommunicator::comm_for(const Exec& ex) {
  NcclComm*& comm = comms_[static_cast<size_t>(ex.stream.index())];
  if (comm == nullptr) comm = &links_->group(ranks_, ex.stream.index());
  return *comm;
}

void NcclCommunicator::collective(Exec& ex, const char* what, const ConstTensor& tensor,
                                  FunctionRef<ncclResult_t(ncclComm_t, cudaStream_t)> issue) {
  if (count_of(tensor) == 0) return;
  cudaStream_t stream = stream_of(ex);
  links_->call(comm_for(ex), what, tensor, stream,
               [&](ncclComm_t handle) { return issue(handle, stream); });
}

ncclResult_t NcclCommunicator::grouped(FunctionRef<ncclResult_t()> issue) const {
  const ncclResult_t started = links_->nccl().group_start();
  if (started != ncclSuccess) return started;
  const ncclResult_t issued = issue();
  const ncclResult_t ended = links_->nccl().group_end();
  return issued != ncclSuccess ? issued : ended;
}

void NcclCommunicator::do_all_reduce(Exec& ex, Tensor inout, ReduceOp op) {
  collective(ex, "all_reduce", inout, [&](ncclComm_t comm, cudaStream_t stream) {
    return links_->nccl().all_reduce(inout.data, inout.data, count_of(inout), type_of(inout.dtype),
                                     op_of(op), comm, stream);
  });
}

void NcclCommunicator::library_sum(Exec& ex, Tensor inout) {
  const ncclComm_t comm = comm_for(ex).handle;
  const ncclResult_t result = links_->nccl().all_reduce(
      inout.data, inout.data, count_of(inout), type_of(inout.dtype), ncclSum, comm, stream_of(ex));
  BEV_CHECK(result == ncclSuccess, Comm, "ncclAllReduce of {} bytes: {}", bytes_of(inout),
            links_->nccl().words(result, comm));
}

void NcclCommunicator::do_all_gather(Exec& ex, ConstTensor shard, Tensor whole, Counts bounds) {
  const NcclLibrary& nccl = links_->nccl();
  const ncclDataType_t type = type_of(whole.dtype);
  collective(ex, "all_gather", whole, [&](ncclComm_t comm, cudaStream_t stream) {
    if (are_even(bounds))
      return nccl.all_gather(shard.data, whole.data, count_of(shard), type, comm, stream);
    return grouped([&] {
      return each_part(whole, bounds, [&](int root, const Tensor& part) {
        return nccl.broadcast(shard.data, part.data, count_of(part), type, root, comm, stream);
      });
    });
  });
}

void NcclCommunicator::do_reduce_scatter(Exec& ex, ConstTensor whole, Counts bounds, Tensor shard) {
  const NcclLibrary& nccl = links_->nccl();
  const ncclDataType_t type = type_of(whole.dtype);
  collective(ex, "reduce_scatter", whole, [&](ncclComm_t comm, cudaStream_t stream) {
    if (are_even(bounds)) {
      return nccl.reduce_scatter(whole.data, shard.data, count_of(shard), type, ncclSum, comm,
                                 stream);
    }
    return grouped([&] {
      return each_part(whole, bounds, [&](int root, const ConstTensor& part) {
        return nccl.reduce(part.data, shard.data, count_of(part), type, ncclSum, root, comm,
                           stream);
      });
    });
  });
}

// Ranks with nothing to move call too: all members of a group make its communicator together.
void NcclCommunicator::do_all_to_all(Exec& ex, ConstTensor in, Counts to, Tensor out, Counts from) {
  std::vector<ConstTensor> sent;
  std::vector<Tensor> received;
  int64_t first_out = 0, first_in = 0;
  for (size_t r = 0; r < to.size(); ++r) {
    sent.push_back(slice(in, 0, first_out, to[r]));
    received.push_back(slice(out, 0, first_in, from[r]));
    first_out += to[r];
    first_in += from[r];
  }
  const auto here = static_cast<size_t>(rank());
  ex.device.copy_on(ex.stream, sent[here].data, received[here].data, bytes_of(sent[here]));
  const NcclLibrary& nccl = links_->nccl();
  const ncclDataType_t type = type_of(in.dtype);
  cudaStream_t stream = stream_of(ex);
  links_->call(comm_for(ex), "all_to_all", in, stream, [&](ncclComm_t comm) {
    return grouped([&] {
      ncclResult_t result = ncclSuccess;
      for (int r = 0; r < size() && result == ncclSuccess; ++r) {
        if (r == rank()) continue;
        const ConstTensor& block = sent[static_cast<size_t>(r)];
        const Tensor& place = received[static_cast<size_t>(r)];
        if (count_of(block) > 0)
          result = nccl.send(block.data, count_of(block), type, r, comm, stream);
        if (count_of(place) > 0 && result == ncclSuccess)
          result = nccl.recv(place.data, count_of(place), type, r, comm, stream);
      }
      return result;
    });
  });
}

void NcclCommunicator::do_broadcast(Exec& ex, Tensor inout, int root) {
  BEV_CHECK(is_contiguous(inout), Internal, "broadcast of a tensor with gaps");
  collective(ex, "broadcast", inout, [&](ncclComm_t comm, cudaStream_t stream) {
    return links_->nccl().broadcast(inout.data, inout.data, count_of(inout), type_of(inout.dtype),
                                    root, comm, stream);
  });
}

NcclPipe& NcclCommunicator::lane(int from, int to, Channel channel) {
  return links_->lane(ranks_[static_cast<size_t>(from)], ranks_[static_cast<size_t>(to)], channel);
}

// Forward along the ring and back. All ranks take the edges of the ring in one order, first the
// even ones: whoever is first among those not done yet has both its ends free. Edges of an order
// apart are made at the same time.
void NcclCommunicator::connect_neighbours() {
  if (size() == 1) return;
  const Doing doing(links_->control().activity(), "opening pipes", peer_words(ranks_, rank()));
  for (const int parity : {0, 1}) {
    for (int edge = parity; edge < size(); edge += 2) {
      const int next = (edge + 1) % size();
      if (rank() != edge && rank() != next) continue;
      lane(edge, next, Channel::Forward);
      lane(next, edge, Channel::Backward);
    }
  }
}

uint64_t NcclCommunicator::do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) {
  NcclPipe& out = lane(rank(), to, channel);
  const SharedEvent ready = ex.stream.share();
  check_cuda(cudaStreamWaitEvent(out.stream, static_cast<cudaEvent_t>(ready.handle), 0),
             "waiting for what is to be sent");
  if (count_of(tensor) > 0) {
    links_->call(*out.comm, "send", tensor, out.stream, [&](ncclComm_t comm) {
      return links_->nccl().send(tensor.data, count_of(tensor), type_of(tensor.dtype),
                                 NcclPipe::kReceiver, comm, out.stream);
    });
  }
  return out.mark();
}

void NcclCommunicator::do_await(Exec& ex, const SendTicket& sent) {
  lane(rank(), sent.to, sent.channel).await(stream_of(ex), sent.number);
}

void NcclCommunicator::do_recv(Exec& ex, Tensor tensor, int from, Channel channel) {
  NcclPipe& in = lane(from, rank(), channel);
  if (count_of(tensor) == 0) return;
  cudaStream_t stream = stream_of(ex);
  links_->call(*in.comm, "recv", tensor, stream, [&](ncclComm_t comm) {
    return links_->nccl().recv(tensor.data, count_of(tensor), type_of(tensor.dtype),
                               NcclPipe::kSender, comm, stream);
  });
}

int64_t NcclCommunicator::all_reduce_max_host(int64_t here) {
  return links_->control().all_reduce_max(ascending_, here);
}

void NcclCommunicator::do_barrier(std::chrono::seconds) { links_->control().barrier(ascending_); }

void NcclCommunicator::abort(const std::string& why) {
  links_->control().abort(why);
  links_->stop(why);
}

std::unique_ptr<Communicator> make_nccl_world(CudaDevice& device, CoordinationClient& control,
                                              std::string& words, std::chrono::seconds limit) {
  auto links = std::make_shared<NcclPool>(device, control, limit);
  words = format("NCCL {}, GPU {}", links->nccl().version, links->gpu());
  std::vector<int> ranks(static_cast<size_t>(control.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_unique<NcclCommunicator>(std::move(links), std::move(ranks), control.rank());
}

}  // namespace bev::cuda
