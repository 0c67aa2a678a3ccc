#include "comm/host.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/check.h"
#include "comm/single.h"

namespace bev {

namespace {

// What others bring to one chunk. Larger ones leave the cache between the exchange and the sum,
// smaller ones wait too often.
constexpr size_t kStagingBytes = size_t{4} << 20;
// Up to here, of all ranks together, one exchange of everything is faster than two of slices.
constexpr size_t kAtOnceBytes = size_t{32} << 10;
constexpr size_t kAlignment = 64;

// Of all members together, so that each slice may begin at a line of the cache.
int64_t elements_at_a_time(DType dtype, int members) {
  const size_t lost = static_cast<size_t>(members) * 2 * kAlignment;
  return static_cast<int64_t>((kStagingBytes - lost) / size_of(dtype));
}

std::string text_of(std::span<const int> ranks) {
  std::string text = "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += format("{}{}", i > 0 ? ", " : "", ranks[i]);
  return text;
}

std::vector<int> first_ranks(int size) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

struct HostCommunicator::Process {
  HostEngine& engine;
  Control& control;
  std::vector<std::byte> memory = std::vector<std::byte>(kStagingBytes + kAlignment);
  std::map<std::vector<int>, int> made = {};  // groups of these ranks so far

  std::byte* staging() {
    void* place = memory.data();
    size_t space = memory.size();
    return static_cast<std::byte*>(std::align(kAlignment, kStagingBytes, place, space));
  }
};

HostCommunicator::HostCommunicator(HostEngine& engine, Control& control)
    : HostCommunicator(std::shared_ptr<Process>(new Process{engine, control}),
                       first_ranks(control.size()), control.rank()) {}

HostCommunicator::HostCommunicator(std::shared_ptr<Process> process, std::vector<int> world_ranks,
                                   int rank)
    : Communicator(rank, static_cast<int>(world_ranks.size())),
      process_(std::move(process)),
      world_ranks_(std::move(world_ranks)),
      ascending_(world_ranks_),
      peers_(text_of(world_ranks_)),
      bytes_(world_ranks_.size()),
      parts_(world_ranks_.size()),
      out_(world_ranks_.size()),
      in_(world_ranks_.size()) {
  BEV_CHECK(size() > 1, Internal, "one process has nobody to exchange tensors with");
  BEV_CHECK(world_ranks_.size() <= ops::kMostCombined, Usage,
            "a group of {} processes; sums are made of at most {} parts", size(),
            ops::kMostCombined);
  std::sort(ascending_.begin(), ascending_.end());
  tell(process_->control.activity(), peers_);
  const std::string name = format("{}, number {}", peers_, process_->made[world_ranks_]++);
  try {
    group_ = process_->engine.group(world_ranks_, name);
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& e) {
    process_->control.blame(format("{} could not be connected: {}", peers_, e.what()));
  }
}

HostCommunicator::~HostCommunicator() = default;

std::unique_ptr<Communicator> HostCommunicator::split(std::span<const int> ranks) {
  const auto mine = std::find(ranks.begin(), ranks.end(), rank());
  BEV_CHECK(mine != ranks.end(), Internal, "rank {} splits off a group without itself", rank());
  if (ranks.size() == 1) return std::make_unique<SingleCommunicator>();
  std::vector<int> world;
  for (const int r : ranks) world.push_back(world_ranks_[static_cast<size_t>(r)]);
  return std::unique_ptr<Communicator>(
      new HostCommunicator(process_, std::move(world), static_cast<int>(mine - ranks.begin())));
}

int64_t HostCommunicator::largest(int64_t here) {
  return process_->control.largest(ascending_, here);
}

// The control connection has its own limit.
void HostCommunicator::do_barrier(std::chrono::seconds) { process_->control.barrier(ascending_); }

void HostCommunicator::abandon(const std::string& why) { process_->control.abandon(why); }

void HostCommunicator::library_sum(Exec& ex, Tensor inout) {
  BEV_CHECK(inout.dtype == DType::f32 && is_contiguous(inout), Internal,
            "the library is asked for the sum of {} {}", to_string(inout.shape),
            name_of(inout.dtype));
  pass_on(ex, "the library's sum", bytes_of(inout), [&] {
    group_->sum(reinterpret_cast<float*>(inout.data), static_cast<size_t>(inout.shape.elements()));
  });
}

template <class F>
void HostCommunicator::pass_on(Exec& ex, const char* what, size_t bytes, const F& call) {
  BEV_CHECK(!ex.device.is_asynchronous(), Usage,
            "{} of tensors on a GPU between processes needs --parallel.engine nccl; mpi and gloo "
            "move host memory",
            what);
  try {
    call();
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& e) {
    process_->control.blame(format("{} of {} bytes with {}: {}", what, bytes, peers_, e.what()));
  }
}

void HostCommunicator::exchange_and_combine(Exec& ex, ConstTensor own, Tensor result, ReduceOp op) {
  const size_t bytes = bytes_of(result);
  // A member's slice may begin anywhere in the tensor, but not in the staging memory.
  const size_t stride = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  std::byte* place = process_->staging();
  for (size_t r = 0; r < parts_.size(); ++r) {
    if (r == static_cast<size_t>(rank())) {
      parts_[r] = own;
      continue;
    }
    in_[r] = {place, bytes};
    parts_[r] = tensor_over(place, result.dtype, result.shape);
    place += stride;
  }
  group_->all_to_all(out_, in_);
  ops::combine(ex, {.parts = parts_, .op = op, .out = result});
}

void HostCommunicator::reduce_at_once(Exec& ex, Tensor inout, ReduceOp op) {
  const size_t bytes = bytes_of(inout);
  std::byte* place = process_->staging();
  std::fill(bytes_.begin(), bytes_.end(), bytes);
  group_->all_gather(inout.data, place, bytes_);
  for (ConstTensor& part : parts_) {
    part = tensor_over(place, inout.dtype, inout.shape);
    place += bytes;
  }
  ops::combine(ex, {.parts = parts_, .op = op, .out = inout});
}

void HostCommunicator::reduce_by_slices(Exec& ex, Tensor chunk, ReduceOp op) {
  const int64_t elements = chunk.shape.elements();
  const auto first_of = [&](int r) { return elements * r / size(); };
  for (int r = 0; r < size(); ++r) {
    const Tensor part = slice(chunk, 0, first_of(r), first_of(r + 1) - first_of(r));
    bytes_[static_cast<size_t>(r)] = bytes_of(part);
    out_[static_cast<size_t>(r)] = {part.data, bytes_of(part)};
  }
  const int64_t first = first_of(rank());
  const Tensor own = slice(chunk, 0, first, first_of(rank() + 1) - first);
  exchange_and_combine(ex, own, own, op);
  group_->all_gather(own.data, chunk.data, bytes_);
}

void HostCommunicator::do_all_reduce(Exec& ex, Tensor inout, ReduceOp op) {
  const int64_t elements = inout.shape.elements();
  const Tensor flat = reshape(inout, {elements});
  pass_on(ex, "all_reduce", bytes_of(inout), [&] {
    if (bytes_of(inout) * bytes_.size() <= kAtOnceBytes) return reduce_at_once(ex, flat, op);
    const int64_t most = elements_at_a_time(inout.dtype, size());
    for (int64_t first = 0; first < elements; first += most)
      reduce_by_slices(ex, slice(flat, 0, first, std::min(most, elements - first)), op);
  });
}

void HostCommunicator::do_reduce_scatter(Exec& ex, ConstTensor whole, Tensor shard) {
  const int64_t elements = shard.shape.elements();
  const ConstTensor from = reshape(whole, {elements * size()});
  const Tensor to = reshape(shard, {elements});
  pass_on(ex, "reduce_scatter", bytes_of(whole), [&] {
    const int64_t most = elements_at_a_time(whole.dtype, size()) / size();
    for (int64_t first = 0; first < elements; first += most) {
      const int64_t count = std::min(most, elements - first);
      for (int r = 0; r < size(); ++r) {
        const ConstTensor part = slice(from, 0, elements * r + first, count);
        out_[static_cast<size_t>(r)] = {part.data, bytes_of(part)};
      }
      exchange_and_combine(ex, slice(from, 0, elements * rank() + first, count),
                           slice(to, 0, first, count), ReduceOp::Sum);
    }
  });
}

void HostCommunicator::do_all_gather(Exec& ex, ConstTensor shard, Tensor whole) {
  pass_on(ex, "all_gather", bytes_of(whole), [&] {
    std::fill(bytes_.begin(), bytes_.end(), bytes_of(shard));
    group_->all_gather(shard.data, whole.data, bytes_);
  });
}

void HostCommunicator::do_broadcast(Exec& ex, Tensor inout, int root) {
  pass_on(ex, "broadcast", bytes_of(inout),
          [&] { group_->broadcast(inout.data, bytes_of(inout), root); });
}

uint64_t HostCommunicator::do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) {
  uint64_t number = 0;
  pass_on(ex, "send", bytes_of(tensor), [&] {
    number = group_->send(tensor.data, bytes_of(tensor), to, static_cast<int>(channel));
  });
  return number;
}

void HostCommunicator::do_await(Exec& ex, const Sent& sent) {
  pass_on(ex, "send", 0, [&] { group_->await(sent.number); });
}

void HostCommunicator::do_recv(Exec& ex, Tensor tensor, int from, Channel channel) {
  pass_on(ex, "recv", bytes_of(tensor),
          [&] { group_->recv(tensor.data, bytes_of(tensor), from, static_cast<int>(channel)); });
}

}  // namespace bev
