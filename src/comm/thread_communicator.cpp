#include "comm/thread_communicator.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>
#include <thread>

#include "base/check.h"
#include "base/format.h"

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

std::vector<int64_t> copy_of(Communicator::Counts counts) { return {counts.begin(), counts.end()}; }

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
  begin(ex, {.name = name, .dtype = t.dtype, .bytes = bytes_of(t), .detail = detail, .in = t.data});
}

void ThreadCommunicator::begin(Exec& ex, const ThreadGroup::Call& call) {
  wait(ex, group_->publish(rank(), call, ex.stream.share(), limit_));
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

void ThreadCommunicator::do_all_gather(Exec& ex, ConstTensor shard, Tensor whole, Counts bounds) {
  begin(ex, {.name = "all_gather",
             .dtype = whole.dtype,
             .bytes = bytes_of(whole),
             .in = shard.data,
             .bounds = copy_of(bounds)});
  for (size_t r = 0; r + 1 < bounds.size(); ++r) {
    const Tensor part = slice(whole, 0, bounds[r], bounds[r + 1] - bounds[r]);
    ex.device.copy_on(ex.stream, group_->call_of(static_cast<int>(r)).in, part.data,
                      bytes_of(part));
  }
  meet(ex, "all_gather");
}

void ThreadCommunicator::do_reduce_scatter(Exec& ex, ConstTensor whole, Counts bounds,
                                           Tensor shard) {
  begin(ex, {.name = "reduce_scatter",
             .dtype = whole.dtype,
             .bytes = bytes_of(whole),
             .in = whole.data,
             .bounds = copy_of(bounds)});
  const std::vector<ConstTensor> parts =
      inputs(whole.dtype, bounds[static_cast<size_t>(rank())], shard.shape.elements());
  ops::combine(ex, {.parts = parts, .out = shard});
  meet(ex, "reduce_scatter");
}

// Each rank fetches its block from every other.
void ThreadCommunicator::do_all_to_all(Exec& ex, ConstTensor in, Counts to, Tensor out,
                                       Counts from) {
  begin(ex, {.name = "all_to_all",
             .dtype = in.dtype,
             .in = in.data,
             .to = copy_of(to),
             .from = copy_of(from)});
  int64_t place = 0;
  for (int r = 0; r < size(); ++r) {
    const ThreadGroup::Call& call = group_->call_of(r);
    const int64_t first = std::accumulate(call.to.begin(), call.to.begin() + rank(), int64_t{0});
    const Tensor block = slice(out, 0, place, from[static_cast<size_t>(r)]);
    ex.device.copy_on(ex.stream, call.in + static_cast<size_t>(first) * size_of(in.dtype),
                      block.data, bytes_of(block));
    place += block.rows();
  }
  meet(ex, "all_to_all");
}

void ThreadCommunicator::do_broadcast(Exec& ex, Tensor inout, int root) {
  begin(ex, "broadcast", inout, root);
  ex.device.copy_on(ex.stream, group_->call_of(root).in, inout.data, bytes_of(inout));
  meet(ex, "broadcast");
}

uint64_t ThreadCommunicator::do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) {
  return group_->post(rank(), to, channel, {tensor.data, bytes_of(tensor), ex.stream.share()});
}

void ThreadCommunicator::do_await(Exec& ex, const SendTicket& sent) {
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

int64_t ThreadCommunicator::all_reduce_max_host(int64_t here) {
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

ThreadGroup::ThreadGroup(std::shared_ptr<ThreadFate> fate, std::vector<int> world_ranks)
    : fate_(std::move(fate)),
      world_ranks_(std::move(world_ranks)),
      calls_(world_ranks_.size()),
      present_(world_ranks_.size()),
      marks_{std::vector<Mark>(world_ranks_.size()), std::vector<Mark>(world_ranks_.size())},
      splits_(world_ranks_.size()) {}

void ThreadGroup::require_whole(int member, const char* what) const {
  if (fate_->culprit < 0) return;
  throw Error(ErrorKind::Comm, format("rank {} gave up in {}: rank {} failed: {}",
                                      world_rank(member), what, fate_->culprit, fate_->why));
}

void ThreadGroup::give_up(int member, const char* what, Limit limit, const std::string& missing) {
  const std::string why = format("rank {} waited {:.1f} s in {} for rank {}", world_rank(member),
                                 std::chrono::duration<double>(limit).count(), what, missing);
  fate_->culprit = world_rank(member);
  fate_->why = why;
  fate_->bell.notify_all();
  throw Error(ErrorKind::Comm, why);
}

std::vector<ThreadGroup::Mark> ThreadGroup::arrive(std::unique_lock<std::mutex>& lock, int member,
                                                   const char* what, const Mark& mark, Limit limit,
                                                   bool whole) {
  std::vector<Mark>& marks = marks_[rounds_ % marks_.size()];
  marks[static_cast<size_t>(member)] = mark;
  present_[static_cast<size_t>(member)] = true;
  if (++arrived_ == size()) {
    arrived_ = 0;
    present_.assign(present_.size(), false);
    ++rounds_;
    fate_->bell.notify_all();
    return marks;
  }
  const uint64_t round = rounds_;
  const auto over = [&] { return rounds_ != round || (whole && fate_->culprit >= 0); };
  if (!fate_->bell.wait_for(lock, limit, over)) {
    std::string missing;
    for (int m = 0; m < size(); ++m) {
      if (present_[static_cast<size_t>(m)]) continue;
      missing += format("{}{}", missing.empty() ? "" : ", ", world_rank(m));
    }
    give_up(member, what, limit, missing);
  }
  if (rounds_ == round) require_whole(member, what);
  return marks;
}

std::vector<ThreadGroup::Mark> ThreadGroup::meet(int member, const char* what, const Mark& mark,
                                                 Limit limit) {
  std::unique_lock lock(fate_->mutex);
  return arrive(lock, member, what, mark, limit, false);
}

std::vector<ThreadGroup::Mark> ThreadGroup::publish(int member, const Call& call, const Mark& mark,
                                                    Limit limit) {
  std::unique_lock lock(fate_->mutex);
  require_whole(member, call.name);
  calls_[static_cast<size_t>(member)] = call;
  std::vector<Mark> marks = arrive(lock, member, call.name, mark, limit, true);
  require_same_calls();
  return marks;
}

void ThreadGroup::require_same_calls() const {
  const Call& first = calls_.front();
  for (int m = 1; m < size(); ++m) {
    const Call& other = call_of(m);
    BEV_CHECK(std::strcmp(first.name, other.name) == 0 && first.dtype == other.dtype &&
                  first.bytes == other.bytes && first.detail == other.detail,
              Internal,
              "rank {} calls {} of {} bytes in {} ({}), rank {} {} of {} bytes in {} ({})",
              world_rank(m), other.name, other.bytes, name_of(other.dtype), other.detail,
              world_rank(0), first.name, first.bytes, name_of(first.dtype), first.detail);
    BEV_CHECK(first.bounds == other.bounds, Internal, "rank {} calls {} with bounds {}, rank {} {}",
              world_rank(m), other.name, fmt::join(other.bounds, ", "), world_rank(0),
              fmt::join(first.bounds, ", "));
  }
  for (size_t a = 0; a < first.to.size(); ++a) {
    for (size_t b = 0; b < first.to.size(); ++b) {
      BEV_CHECK(calls_[a].to[b] == calls_[b].from[a], Internal,
                "{}: rank {} sends {} elements to rank {}, which expects {}", first.name,
                world_ranks_[a], calls_[a].to[b], world_ranks_[b], calls_[b].from[a]);
    }
  }
}

uint64_t ThreadGroup::post(int from, int to, Channel channel, const Post& post) {
  const std::lock_guard lock(fate_->mutex);
  require_whole(from, "send");
  Pipe& pipe = pipes_[{from, to, channel}];
  pipe.posts.push_back(post);
  fate_->bell.notify_all();
  return ++pipe.posted;
}

ThreadGroup::Mark ThreadGroup::await_collected(int from, const SendTicket& sent, Limit limit) {
  std::unique_lock lock(fate_->mutex);
  const Pipe& pipe = pipes_[{from, sent.to, sent.channel}];
  // After a failure nobody begins to read, but who has begun still does.
  const auto over = [&] {
    return (fate_->culprit >= 0 && !pipe.is_read) || pipe.collected >= sent.number;
  };
  if (!fate_->bell.wait_for(lock, limit, over)) {
    give_up(from, "send", limit, format("{}", world_rank(sent.to)));
  }
  if (pipe.collected < sent.number) require_whole(from, "send");
  return pipe.taken;
}

void ThreadGroup::collect(int from, int to, Channel channel, size_t bytes, Limit limit,
                          FunctionRef<Mark(const Post&)> take) {
  std::unique_lock lock(fate_->mutex);
  Pipe& pipe = pipes_[{from, to, channel}];
  const auto over = [&] { return fate_->culprit >= 0 || !pipe.posts.empty(); };
  if (!fate_->bell.wait_for(lock, limit, over)) {
    give_up(to, "recv", limit, format("{}", world_rank(from)));
  }
  require_whole(to, "recv");
  const Post post = pipe.posts.front();
  BEV_CHECK(post.bytes == bytes, Internal, "rank {} sent {} bytes, rank {} expects {}",
            world_rank(from), post.bytes, world_rank(to), bytes);
  pipe.posts.pop_front();
  pipe.is_read = true;
  lock.unlock();
  const auto ends = [&] {
    lock.lock();
    pipe.is_read = false;
    fate_->bell.notify_all();
  };
  try {
    Mark taken = take(post);
    ends();
    pipe.taken = std::move(taken);
    ++pipe.collected;
  } catch (...) {
    if (!lock.owns_lock()) ends();
    throw;
  }
}

void ThreadGroup::abandon(int member, const std::string& why) {
  std::unique_lock lock(fate_->mutex);
  if (fate_->culprit < 0) {
    fate_->culprit = world_rank(member);
    fate_->why = why;
  }
  fate_->bell.notify_all();
  fate_->bell.wait(lock, [&] {
    for (const auto& [ends, pipe] : pipes_) {
      if (std::get<0>(ends) == member && pipe.is_read) return false;
    }
    return true;
  });
}

std::shared_ptr<ThreadGroup> ThreadGroup::part(int member, std::span<const int> members) {
  const std::lock_guard lock(fate_->mutex);
  std::vector<int> key(members.begin(), members.end());
  const int count = splits_[static_cast<size_t>(member)][key]++;
  std::shared_ptr<ThreadGroup>& group = parts_[{key, count}];
  if (group == nullptr) {
    std::vector<int> ranks;
    for (const int m : members) ranks.push_back(world_rank(m));
    group = std::make_shared<ThreadGroup>(fate_, std::move(ranks));
  }
  return group;
}

}  // namespace bev
