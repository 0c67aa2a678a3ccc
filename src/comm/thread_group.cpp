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

void ThreadGroup::arrive(std::unique_lock<std::mutex>& lock, int member, const char* what,
                         Limit limit, bool whole) {
  present_[static_cast<size_t>(member)] = true;
  if (++arrived_ == size()) {
    arrived_ = 0;
    present_.assign(present_.size(), false);
    ++meetings_;
    fate_->bell.notify_all();
    return;
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
}

void ThreadGroup::meet(int member, const char* what, Limit limit) {
  std::unique_lock lock(fate_->mutex);
  arrive(lock, member, what, limit, false);
}

void ThreadGroup::publish(int member, const Call& call, Limit limit) {
  std::unique_lock lock(fate_->mutex);
  require_whole(member, call.name);
  calls_[static_cast<size_t>(member)] = call;
  arrive(lock, member, call.name, limit, true);
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
}

uint64_t ThreadGroup::post(int from, int to, Channel channel, const std::byte* data, size_t bytes) {
  const std::lock_guard lock(fate_->mutex);
  require_whole(from, "send");
  Pipe& pipe = pipes_[{from, to, channel}];
  pipe.posts.push_back({data, bytes});
  fate_->bell.notify_all();
  return ++pipe.posted;
}

void ThreadGroup::await_collected(int from, const Sent& sent, Limit limit) {
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
}

void ThreadGroup::collect(int from, int to, Channel channel, std::byte* data, size_t bytes,
                          Limit limit) {
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
  if (bytes > 0) std::memcpy(data, post.data, bytes);
  lock.lock();
  pipe.is_read = false;
  ++pipe.collected;
  fate_->bell.notify_all();
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
