#include "comm/host_communicator.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "base/check.h"
#include "comm/communicator.h"

namespace bev {

namespace {

// What others bring to one chunk. Larger ones leave the cache between the exchange and the sum,
// smaller ones wait too often.
constexpr size_t kStagingBytes = size_t{4} << 20;
constexpr int64_t kPlaces = 2;
// Up to here, of all ranks together, one exchange of everything is faster than two of slices.
constexpr size_t kAtOnceBytes = size_t{32} << 10;
constexpr size_t kAlignment = 64;

// In staging memory each slice begins at a line of the cache.
size_t staged_bytes(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Of all members together.
int64_t elements_at_a_time(DType dtype, int members) {
  const size_t lost = static_cast<size_t>(members) * 2 * kAlignment;
  return static_cast<int64_t>((kStagingBytes - lost) / size_of(dtype));
}

// Where what belongs to chunk c is staged.
size_t place_of(int64_t c) { return static_cast<size_t>(c % kPlaces); }

std::span<const std::byte> bytes_in(const ConstTensor& t) { return {t.data, bytes_of(t)}; }

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
  CoordinationClient& control;
  std::vector<std::byte> memory =
      std::vector<std::byte>(static_cast<size_t>(kPlaces) * kStagingBytes + kAlignment);
  std::map<std::vector<int>, int> made = {};  // groups of these ranks so far

  std::byte* staging(size_t place) {
    void* begin = memory.data();
    size_t space = memory.size();
    std::align(kAlignment, static_cast<size_t>(kPlaces) * kStagingBytes, begin, space);
    return static_cast<std::byte*>(begin) + place * kStagingBytes;
  }
};

HostCommunicator::HostCommunicator(HostEngine& engine, CoordinationClient& control)
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
  report_to(process_->control.activity(), peers_);
  const std::string name = format("{}, number {}", peers_, process_->made[world_ranks_]++);
  try {
    group_ = process_->engine.group(world_ranks_, name);
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& e) {
    process_->control.fail_with(format("{} could not be connected: {}", peers_, e.what()));
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

int64_t HostCommunicator::all_reduce_max_host(int64_t here) {
  return process_->control.all_reduce_max(ascending_, here);
}

// The control connection has its own limit.
void HostCommunicator::do_barrier(std::chrono::seconds) { process_->control.barrier(ascending_); }

void HostCommunicator::abort(const std::string& why) { process_->control.abort(why); }

void HostCommunicator::library_sum(Exec& ex, Tensor inout) {
  BEV_CHECK(inout.dtype == DType::f32 && is_contiguous(inout), Internal,
            "the library is asked for the sum of {} {}", to_string(inout.shape),
            name_of(inout.dtype));
  reduce_bucket(ex, "the library's sum", bytes_of(inout), [&] {
    group_->sum(reinterpret_cast<float*>(inout.data), static_cast<size_t>(inout.shape.elements()));
  });
}

template <class F>
void HostCommunicator::reduce_bucket(Exec& ex, const char* what, size_t bytes, const F& call) {
  BEV_CHECK(!ex.device.is_asynchronous(), Usage,
            "{} of tensors on a GPU between processes needs --parallel.backend nccl; mpi and gloo "
            "move host memory",
            what);
  try {
    call();
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& e) {
    process_->control.fail_with(
        format("{} of {} bytes with {}: {}", what, bytes, peers_, e.what()));
  }
}

uint64_t HostCommunicator::begin_exchange(size_t place, size_t bytes) {
  std::byte* to = process_->staging(place);
  for (size_t r = 0; r < in_.size(); ++r) {
    if (r == static_cast<size_t>(rank())) continue;
    in_[r] = {to, bytes};
    to += staged_bytes(bytes);
  }
  return group_->all_to_all(out_, in_);
}

void HostCommunicator::combine_staged(Exec& ex, size_t place, ConstTensor own, Tensor result,
                                      ReduceOp op) {
  std::byte* from = process_->staging(place);
  for (size_t r = 0; r < parts_.size(); ++r) {
    if (r == static_cast<size_t>(rank())) {
      parts_[r] = own;
      continue;
    }
    parts_[r] = tensor_over(from, result.dtype, result.shape);
    from += staged_bytes(bytes_of(result));
  }
  ops::combine(ex, {.parts = parts_, .op = op, .out = result});
}

void HostCommunicator::reduce_at_once(Exec& ex, Tensor inout, ReduceOp op) {
  const size_t bytes = bytes_of(inout);
  std::byte* place = process_->staging(0);
  std::fill(bytes_.begin(), bytes_.end(), bytes);
  group_->all_gather(inout.data, place, bytes_);
  for (ConstTensor& part : parts_) {
    part = tensor_over(place, inout.dtype, inout.shape);
    place += bytes;
  }
  ops::combine(ex, {.parts = parts_, .op = op, .out = inout});
}

Tensor HostCommunicator::slice_of(const Tensor& chunk, int member) const {
  const int64_t elements = chunk.shape.elements();
  const int64_t first = elements * member / size();
  return slice(chunk, 0, first, elements * (member + 1) / size() - first);
}

uint64_t HostCommunicator::begin_scatter(size_t place, const Tensor& chunk) {
  for (int r = 0; r < size(); ++r) {
    out_[static_cast<size_t>(r)] = bytes_in(slice_of(chunk, r));
  }
  return begin_exchange(place, bytes_of(slice_of(chunk, rank())));
}

uint64_t HostCommunicator::begin_gather(const Tensor& chunk) {
  const Tensor own = slice_of(chunk, rank());
  for (int r = 0; r < size(); ++r) {
    const Tensor part = slice_of(chunk, r);
    out_[static_cast<size_t>(r)] = bytes_in(own);
    in_[static_cast<size_t>(r)] = {part.data, bytes_of(part)};
  }
  return group_->all_to_all(out_, in_);
}

// Each member combines a slice of each chunk, in place. While it does, the inputs of the next
// chunks and the results of the last are on their way.
void HostCommunicator::do_all_reduce(Exec& ex, Tensor inout, ReduceOp op) {
  const int64_t elements = inout.shape.elements();
  const Tensor flat = reshape(inout, {elements});
  const int64_t most = elements_at_a_time(inout.dtype, size());
  const int64_t chunks = (elements + most - 1) / most;
  const auto chunk = [&](int64_t c) {
    return slice(flat, 0, c * most, std::min(most, elements - c * most));
  };
  reduce_bucket(ex, "all_reduce", bytes_of(inout), [&] {
    if (bytes_of(inout) * bytes_.size() <= kAtOnceBytes) return reduce_at_once(ex, flat, op);
    std::array<uint64_t, kPlaces> inputs{}, results{};
    for (int64_t c = 0, begun = 0; c < chunks; ++c) {
      for (; begun < std::min(chunks, c + kPlaces); ++begun)
        inputs[place_of(begun)] = begin_scatter(place_of(begun), chunk(begun));
      group_->await(inputs[place_of(c)]);
      const Tensor own = slice_of(chunk(c), rank());
      combine_staged(ex, place_of(c), own, own, op);
      if (c >= kPlaces) group_->await(results[place_of(c)]);
      results[place_of(c)] = begin_gather(chunk(c));
    }
    for (int64_t c = std::max<int64_t>(0, chunks - kPlaces); c < chunks; ++c)
      group_->await(results[place_of(c)]);
  });
}

// A chunk is a part of every member's shard. Those of a small shard are empty after its end.
void HostCommunicator::do_reduce_scatter(Exec& ex, ConstTensor whole, Counts bounds, Tensor shard) {
  const int64_t most = elements_at_a_time(whole.dtype, size()) / size();
  int64_t largest = 0;
  for (size_t r = 1; r < bounds.size(); ++r) largest = std::max(largest, bounds[r] - bounds[r - 1]);
  const int64_t chunks = (largest + most - 1) / most;
  const auto part = [&](int member, int64_t c) {
    const int64_t begin = bounds[static_cast<size_t>(member)];
    const int64_t end = bounds[static_cast<size_t>(member) + 1];
    const int64_t first = std::min(begin + c * most, end);
    return slice(whole, 0, first, std::min(most, end - first));
  };
  reduce_bucket(ex, "reduce_scatter", bytes_of(whole), [&] {
    std::array<uint64_t, kPlaces> inputs{};
    for (int64_t c = 0, begun = 0; c < chunks; ++c) {
      for (; begun < std::min(chunks, c + kPlaces); ++begun) {
        for (int r = 0; r < size(); ++r) out_[static_cast<size_t>(r)] = bytes_in(part(r, begun));
        inputs[place_of(begun)] =
            begin_exchange(place_of(begun), out_[static_cast<size_t>(rank())].size());
      }
      group_->await(inputs[place_of(c)]);
      const ConstTensor own = part(rank(), c);
      if (own.rows() == 0) continue;
      combine_staged(ex, place_of(c), own, slice(shard, 0, c * most, own.rows()), ReduceOp::Sum);
    }
  });
}

void HostCommunicator::do_all_gather(Exec& ex, ConstTensor shard, Tensor whole, Counts bounds) {
  reduce_bucket(ex, "all_gather", bytes_of(whole), [&] {
    for (size_t r = 0; r < bytes_.size(); ++r)
      bytes_[r] = static_cast<size_t>(bounds[r + 1] - bounds[r]) * size_of(whole.dtype);
    group_->all_gather(shard.data, whole.data, bytes_);
  });
}

void HostCommunicator::do_all_to_all(Exec& ex, ConstTensor in, Counts to, Tensor out, Counts from) {
  reduce_bucket(ex, "all_to_all", bytes_of(in), [&] {
    int64_t first_out = 0, first_in = 0;
    for (size_t r = 0; r < out_.size(); ++r) {
      const Tensor block = slice(out, 0, first_in, from[r]);
      out_[r] = bytes_in(slice(in, 0, first_out, to[r]));
      in_[r] = {block.data, bytes_of(block)};
      first_out += to[r];
      first_in += from[r];
    }
    const uint64_t posted = group_->all_to_all(out_, in_);
    const auto here = static_cast<size_t>(rank());
    ex.device.copy_on(ex.stream, out_[here].data(), in_[here].data(), out_[here].size());
    group_->await(posted);
  });
}

void HostCommunicator::do_broadcast(Exec& ex, Tensor inout, int root) {
  reduce_bucket(ex, "broadcast", bytes_of(inout),
                [&] { group_->broadcast(inout.data, bytes_of(inout), root); });
}

uint64_t HostCommunicator::do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) {
  uint64_t number = 0;
  reduce_bucket(ex, "send", bytes_of(tensor), [&] {
    number = group_->send(tensor.data, bytes_of(tensor), to, static_cast<int>(channel));
  });
  return number;
}

void HostCommunicator::do_await(Exec& ex, const SendTicket& sent) {
  reduce_bucket(ex, "send", 0, [&] { group_->await(sent.number); });
}

void HostCommunicator::do_recv(Exec& ex, Tensor tensor, int from, Channel channel) {
  reduce_bucket(ex, "recv", bytes_of(tensor), [&] {
    group_->recv(tensor.data, bytes_of(tensor), from, static_cast<int>(channel));
  });
}

}  // namespace bev
