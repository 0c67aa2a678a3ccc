#include "comm/thread_group.h"

#include <cstring>

#include "base/check.h"
#include "base/format.h"

namespace bev {

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
  std::vector<Mark>& marks = marks_[meetings_ % marks_.size()];
  marks[static_cast<size_t>(member)] = mark;
  present_[static_cast<size_t>(member)] = true;
  if (++arrived_ == size()) {
    arrived_ = 0;
    present_.assign(present_.size(), false);
    ++meetings_;
    fate_->bell.notify_all();
    return marks;
  }
  const uint64_t meeting = meetings_;
  const auto over = [&] { return meetings_ != meeting || (whole && fate_->culprit >= 0); };
  if (!fate_->bell.wait_for(lock, limit, over)) {
    std::string missing;
    for (int m = 0; m < size(); ++m) {
      if (present_[static_cast<size_t>(m)]) continue;
      missing += format("{}{}", missing.empty() ? "" : ", ", world_rank(m));
    }
    give_up(member, what, limit, missing);
  }
  if (meetings_ == meeting) require_whole(member, what);
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
  const Call& first = calls_.front();
  for (int m = 1; m < size(); ++m) {
    const Call& other = call_of(m);
    BEV_CHECK(std::strcmp(first.name, other.name) == 0 && first.dtype == other.dtype &&
                  first.bytes == other.bytes && first.detail == other.detail,
              Internal,
              "rank {} calls {} of {} bytes in {} ({}), rank {} {} of {} bytes in {} ({})",
              world_rank(m), other.name, other.bytes, name_of(other.dtype), other.detail,
              world_rank(0), first.name, first.bytes, name_of(first.dtype), first.detail);
  }
  return marks;
}

uint64_t ThreadGroup::post(int from, int to, Channel channel, const Post& post) {
  const std::lock_guard lock(fate_->mutex);
  require_whole(from, "send");
  Pipe& pipe = pipes_[{from, to, channel}];
  pipe.posts.push_back(post);
  fate_->bell.notify_all();
  return ++pipe.posted;
}

ThreadGroup::Mark ThreadGroup::await_collected(int from, const Sent& sent, Limit limit) {
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
