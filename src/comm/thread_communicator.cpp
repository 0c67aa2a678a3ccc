#include "comm/thread_communicator.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <thread>

#include "base/check.h"

namespace bev {

namespace {

std::string message_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception without a message";
  }
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

std::vector<ConstTensor> ThreadCommunicator::inputs(DType dtype, int64_t first,
                                                    int64_t count) const {
  const size_t offset = static_cast<size_t>(first) * size_of(dtype);
  std::vector<ConstTensor> all;
  for (int r = 0; r < size(); ++r)
    all.emplace_back(tensor_over(group_->call_of(r).in + offset, dtype, {count}));
  return all;
}

void ThreadCommunicator::wait(Exec& ex, const std::vector<ThreadGroup::Mark>& marks) const {
  for (int r = 0; r < size(); ++r) {
    if (r != rank()) ex.stream.wait(marks[static_cast<size_t>(r)]);
  }
}

void ThreadCommunicator::begin(Exec& ex, const char* name, const ConstTensor& t, int detail) {
  wait(ex,
       group_->publish(
           rank(),
           {.name = name, .dtype = t.dtype, .bytes = bytes_of(t), .detail = detail, .in = t.data},
           ex.stream.share(), limit_));
}

void ThreadCommunicator::meet(Exec& ex, const char* name) {
  wait(ex, group_->meet(rank(), name, ex.stream.share(), limit_));
}

// Each rank combines one slice, in place: nobody else reads that slice of its tensor. Then all copy
// the slices of the others.
void ThreadCommunicator::do_all_reduce(Exec& ex, Tensor inout, ReduceOp op) {
  begin(ex, "all_reduce", inout, static_cast<int>(op));
  const int64_t elements = inout.shape.elements();
  const Tensor flat = reshape(inout, {elements});
  const auto first_of = [&](int r) { return elements * r / size(); };
  const auto slice_of = [&](const auto& t, int r) {
    return slice(t, 0, first_of(r), first_of(r + 1) - first_of(r));
  };
  const int64_t first = first_of(rank());
  const std::vector<ConstTensor> parts = inputs(inout.dtype, first, first_of(rank() + 1) - first);
  ops::combine(ex, {.parts = parts, .op = op, .out = slice_of(flat, rank())});
  meet(ex, "all_reduce");
  const std::vector<ConstTensor> all = inputs(inout.dtype, 0, elements);
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    const Tensor to = slice_of(flat, r);
    ex.device.copy_on(ex.stream, slice_of(all[static_cast<size_t>(r)], r).data, to.data,
                      bytes_of(to));
  }
  meet(ex, "all_reduce");
}

void ThreadCommunicator::do_all_gather(Exec& ex, ConstTensor shard, Tensor whole) {
  begin(ex, "all_gather", shard);
  const size_t bytes = bytes_of(shard);
  for (int r = 0; r < size(); ++r) {
    ex.device.copy_on(ex.stream, group_->call_of(r).in, whole.data + static_cast<size_t>(r) * bytes,
                      bytes);
  }
  meet(ex, "all_gather");
}

void ThreadCommunicator::do_reduce_scatter(Exec& ex, ConstTensor whole, Tensor shard) {
  begin(ex, "reduce_scatter", whole);
  const int64_t elements = shard.shape.elements();
  const std::vector<ConstTensor> parts = inputs(whole.dtype, elements * rank(), elements);
  ops::combine(ex, {.parts = parts, .out = reshape(shard, {elements})});
  meet(ex, "reduce_scatter");
}

void ThreadCommunicator::do_broadcast(Exec& ex, Tensor inout, int root) {
  begin(ex, "broadcast", inout, root);
  ex.device.copy_on(ex.stream, group_->call_of(root).in, inout.data, bytes_of(inout));
  meet(ex, "broadcast");
}

uint64_t ThreadCommunicator::do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) {
  return group_->post(rank(), to, channel, {tensor.data, bytes_of(tensor), ex.stream.share()});
}

void ThreadCommunicator::do_await(Exec& ex, const Sent& sent) {
  ex.stream.wait(group_->await_collected(rank(), sent, limit_));
}

void ThreadCommunicator::do_recv(Exec& ex, Tensor tensor, int from, Channel channel) {
  group_->collect(from, rank(), channel, bytes_of(tensor), limit_,
                  [&](const ThreadGroup::Post& post) {
                    ex.stream.wait(post.ready);
                    ex.device.copy_on(ex.stream, post.data, tensor.data, post.bytes);
                    return ex.stream.share();
                  });
}

int64_t ThreadCommunicator::largest(int64_t here) {
  const auto* value = reinterpret_cast<const std::byte*>(&here);
  group_->publish(rank(), {.name = "largest", .bytes = sizeof here, .in = value}, {}, limit_);
  int64_t result = here;
  for (int r = 0; r < size(); ++r)
    result = std::max(result, *reinterpret_cast<const int64_t*>(group_->call_of(r).in));
  group_->meet(rank(), "largest", {}, limit_);
  return result;
}

void ThreadCommunicator::do_barrier(std::chrono::seconds limit) {
  group_->publish(rank(), {.name = "barrier"}, {}, limit);
  // Nobody brings something new while others still look at what was brought.
  group_->meet(rank(), "barrier", {}, limit);
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
