#include "comm/thread.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <numeric>
#include <thread>
#include <type_traits>

#include "base/check.h"
#include "tensor/visit.h"

namespace bev {

namespace {

void require_host(const Exec& ex) {
  const DeviceKind kind = ex.device.kind();
  BEV_CHECK(kind == DeviceKind::Cpu || kind == DeviceKind::Reference, Usage,
            "ranks that are threads exchange host memory: the cpu and reference devices");
}

// Elements [begin, begin + count) of all inputs combined into out. Small blocks, so that the sum of
// a block stays in the cache while the inputs pass.
template <class T, class Sum>
void combine(const std::vector<const std::byte*>& inputs, ReduceOp op, int64_t begin, int64_t count,
             T* out) {
  constexpr int64_t kBlock = 1024;
  std::array<Sum, kBlock> sums;
  for (int64_t done = 0; done < count; done += kBlock) {
    const int64_t block = std::min(kBlock, count - done);
    for (size_t r = 0; r < inputs.size(); ++r) {
      const T* in = reinterpret_cast<const T*>(inputs[r]) + begin + done;
      for (int64_t i = 0; i < block; ++i) {
        Sum& sum = sums[static_cast<size_t>(i)];
        const auto value = static_cast<Sum>(in[i]);
        if (r == 0) {
          sum = value;
        } else if (op == ReduceOp::Sum) {
          sum += value;
        } else {
          sum = op == ReduceOp::Max ? std::max(sum, value) : std::min(sum, value);
        }
      }
    }
    for (int64_t i = 0; i < block; ++i)
      out[done + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
  }
}

void combine(const std::vector<const std::byte*>& inputs, DType dtype, ReduceOp op, int64_t begin,
             int64_t count, std::byte* out) {
  visit_floating(dtype, "a sum over ranks", [&]<class T>() {
    using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
    combine<T, Sum>(inputs, op, begin, count, reinterpret_cast<T*>(out));
  });
}

std::string message_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception without a message";
  }
}

void copy_unless_there(const std::byte* from, std::byte* to, size_t bytes) {
  if (from != to && bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

ThreadCommunicator::ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank,
                                       ThreadGroup::Limit limit)
    : Communicator(rank, group->size()), group_(std::move(group)), limit_(limit) {}

std::unique_ptr<Communicator> ThreadCommunicator::split(std::span<const int> ranks) {
  const auto mine = std::find(ranks.begin(), ranks.end(), rank());
  BEV_CHECK(mine != ranks.end(), Internal, "rank {} splits off a group without itself", rank());
  return std::make_unique<ThreadCommunicator>(group_->part(rank(), ranks),
                                              static_cast<int>(mine - ranks.begin()), limit_);
}

std::vector<const std::byte*> ThreadCommunicator::inputs() const {
  std::vector<const std::byte*> all;
  for (int r = 0; r < size(); ++r) all.push_back(group_->call_of(r).in);
  return all;
}

void ThreadCommunicator::begin(Exec& ex, const char* name, const ConstTensor& t, int detail) {
  require_host(ex);
  group_->publish(
      rank(),
      {.name = name, .dtype = t.dtype, .bytes = bytes_of(t), .detail = detail, .in = t.data},
      limit_);
}

// Each rank combines one slice, in place: nobody else reads that slice of its tensor. Then all copy
// the slices of the others.
void ThreadCommunicator::do_all_reduce(Exec& ex, Tensor inout, ReduceOp op) {
  begin(ex, "all_reduce", inout, static_cast<int>(op));
  const int64_t elements = inout.shape.elements();
  const auto first_of = [&](int r) { return elements * r / size(); };
  const auto offset_of = [&](int r) {
    return static_cast<size_t>(first_of(r)) * size_of(inout.dtype);
  };
  const std::vector<const std::byte*> all = inputs();
  const int64_t first = first_of(rank());
  combine(all, inout.dtype, op, first, first_of(rank() + 1) - first,
          inout.data + offset_of(rank()));
  group_->meet(rank(), "all_reduce", limit_);
  for (int r = 0; r < size(); ++r) {
    copy_unless_there(all[static_cast<size_t>(r)] + offset_of(r), inout.data + offset_of(r),
                      offset_of(r + 1) - offset_of(r));
  }
  group_->meet(rank(), "all_reduce", limit_);
}

void ThreadCommunicator::do_all_gather(Exec& ex, ConstTensor shard, Tensor whole) {
  begin(ex, "all_gather", shard);
  const size_t bytes = bytes_of(shard);
  const std::vector<const std::byte*> all = inputs();
  for (size_t r = 0; r < all.size(); ++r) copy_unless_there(all[r], whole.data + r * bytes, bytes);
  group_->meet(rank(), "all_gather", limit_);
}

void ThreadCommunicator::do_reduce_scatter(Exec& ex, ConstTensor whole, Tensor shard) {
  begin(ex, "reduce_scatter", whole);
  const int64_t elements = shard.shape.elements();
  combine(inputs(), whole.dtype, ReduceOp::Sum, elements * rank(), elements, shard.data);
  group_->meet(rank(), "reduce_scatter", limit_);
}

void ThreadCommunicator::do_broadcast(Exec& ex, Tensor inout, int root) {
  begin(ex, "broadcast", inout, root);
  copy_unless_there(group_->call_of(root).in, inout.data, bytes_of(inout));
  group_->meet(rank(), "broadcast", limit_);
}

uint64_t ThreadCommunicator::do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) {
  require_host(ex);
  return group_->post(rank(), to, channel, tensor.data, bytes_of(tensor));
}

void ThreadCommunicator::do_await(Exec&, const Sent& sent) {
  group_->await_collected(rank(), sent, limit_);
}

void ThreadCommunicator::do_recv(Exec& ex, Tensor tensor, int from, Channel channel) {
  require_host(ex);
  group_->collect(from, rank(), channel, tensor.data, bytes_of(tensor), limit_);
}

void ThreadCommunicator::do_barrier(std::chrono::seconds limit) {
  group_->publish(rank(), {.name = "barrier"}, limit);
  // Nobody brings something new while others still look at what was brought.
  group_->meet(rank(), "barrier", limit);
}

void run_ranks(int size, ThreadGroup::Limit limit, FunctionRef<void(Communicator& world)> body) {
  const auto fate = std::make_shared<ThreadFate>();
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto group = std::make_shared<ThreadGroup>(fate, ranks);
  std::exception_ptr first;
  const auto run = [&](int rank) {
    try {
      ThreadCommunicator world(group, rank, limit);
      body(world);
    } catch (...) {
      const std::lock_guard lock(fate->mutex);
      if (fate->culprit < 0) {
        fate->culprit = rank;
        fate->why = message_of(std::current_exception());
      }
      if (first == nullptr || fate->culprit == rank) first = std::current_exception();
      fate->bell.notify_all();
    }
  };
  std::vector<std::thread> threads;
  for (int rank = 1; rank < size; ++rank) threads.emplace_back(run, rank);
  run(0);
  for (std::thread& thread : threads) thread.join();
  if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace bev
