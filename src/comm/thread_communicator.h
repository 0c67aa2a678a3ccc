// Ranks as threads of one process, on processors or on one GPU.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/function_ref.h"
#include "comm/communicator.h"

namespace bev {

// Synchronization of ranks that are threads of one process: what they publish for each other, and
// the failure of one of them.

// Shared by all groups of a world: one lock, one bell, and who failed first.
struct ThreadFate {
  std::mutex mutex;
  std::condition_variable bell;
  int culprit = -1;  // -1: all is well
  std::string why;
};

// The members of one communicator. All functions may be called from any thread.
class ThreadGroup {
 public:
  // `world_ranks`: the members, as messages name them.
  ThreadGroup(std::shared_ptr<ThreadFate> fate, std::vector<int> world_ranks);

  int size() const { return static_cast<int>(world_ranks_.size()); }
  int world_rank(int member) const { return world_ranks_[static_cast<size_t>(member)]; }

  // How far the work of a member has come: others may go on when it has passed.
  using Mark = SharedEvent;
  // The arguments of a member in a collective. Addresses differ, and counts fit together; all else
  // is the same at all members.
  struct Call {
    const char* name = "";
    DType dtype{};
    size_t bytes = 0;
    int detail = 0;  // the root or the operation
    const std::byte* in = nullptr;
    std::vector<int64_t> bounds{};
    std::vector<int64_t> to{}, from{};  // all_to_all: elements, by member
  };
  using Limit = std::chrono::milliseconds;

  // The beginning of a collective: returns when all members have come and what they brought can be
  // read. Throws a Comm error that names the culprit when a rank has failed, or those who are
  // missing when the limit passes, which breaks the world; and an Internal error, at every member,
  // when they call different things: nobody then touches the memory of another. Returns how far
  // each has come.
  std::vector<Mark> publish(int member, const Call& call, const Mark& mark, Limit limit);
  const Call& call_of(int member) const { return calls_[static_cast<size_t>(member)]; }
  // In a collective that all have begun: returns when all have come so far. A failure elsewhere
  // does not end it: those who are still reading would lose the memory under their hands.
  std::vector<Mark> meet(int member, const char* what, const Mark& mark, Limit limit);

  // A message. The memory stays the sender's, who keeps it until it is collected or abandon() has
  // returned.
  struct Post {
    const std::byte* data;
    size_t bytes;
    Mark ready;  // when the memory holds the message
  };
  // Returns its number among those of the channel.
  uint64_t post(int from, int to, Channel channel, const Post& post);
  // Returns when it is collected, with what its memory still waits for; throws when nobody will.
  Mark await_collected(int from, const SendTicket& sent, Limit limit);
  // Waits for a message; `take` copies it and returns when that will be done.
  void collect(int from, int to, Channel channel, size_t bytes, Limit limit,
               FunctionRef<Mark(const Post&)> take);

  // The member has failed. Returns when nobody reads what it has posted.
  void abandon(int member, const std::string& why);

  // The group of some members, the same object for each of them: the n-th call of a member with
  // these ranks meets the n-th call of the others.
  std::shared_ptr<ThreadGroup> part(int member, std::span<const int> members);

 private:
  struct Pipe {
    std::deque<Post> posts;
    uint64_t posted = 0, collected = 0;
    Mark taken{};          // of the last one collected
    bool is_read = false;  // by a receiver that is copying
  };
  void require_whole(int member, const char* what) const;
  [[noreturn]] void give_up(int member, const char* what, Limit limit, const std::string& missing);
  // Throws an Internal error unless the members call the same thing. REQUIRES: all have published.
  void require_same_calls() const;
  // Counts the member in and waits for the others; `whole`: or until a rank has failed.
  std::vector<Mark> arrive(std::unique_lock<std::mutex>& lock, int member, const char* what,
                           const Mark& mark, Limit limit, bool whole);

  std::shared_ptr<ThreadFate> fate_;
  std::vector<int> world_ranks_;
  std::vector<Call> calls_;
  std::vector<bool> present_;  // in the current round
  // By round modulo 2: some members may still read the previous round.
  std::array<std::vector<Mark>, 2> marks_;
  int arrived_ = 0;
  uint64_t rounds_ = 0;
  std::map<std::tuple<int, int, Channel>, Pipe> pipes_;  // from, to
  std::map<std::pair<std::vector<int>, int>, std::shared_ptr<ThreadGroup>> parts_;
  std::vector<std::map<std::vector<int>, int>> splits_;  // of each member
};

// Sums are made in the order of the ranks, in the accumulation type, and rounded once: all members
// get the same bits, whatever the timing.
class ThreadCommunicator final : public Communicator {
 public:
  // `limit`: nobody waits longer for a peer.
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank, ThreadGroup::Limit limit);
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override;
  int64_t all_reduce_max_host(int64_t here) override;
  void abort(const std::string& why) override { group_->abandon(rank(), why); }

 private:
  void do_all_reduce(Exec& ex, Tensor inout, ReduceOp op) override;
  void do_all_gather(Exec& ex, ConstTensor shard, Tensor whole, Counts bounds) override;
  void do_reduce_scatter(Exec& ex, ConstTensor whole, Counts bounds, Tensor shard) override;
  void do_all_to_all(Exec& ex, ConstTensor in, Counts to, Tensor out, Counts from) override;
  void do_broadcast(Exec& ex, Tensor inout, int root) override;
  uint64_t do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) override;
  void do_await(Exec& ex, const SendTicket& sent) override;
  void do_recv(Exec& ex, Tensor tensor, int from, Channel channel) override;
  void do_barrier(std::chrono::seconds limit) override;

  // A collective on t begins: from here on, in the order of the stream, what the others brought can
  // be read.
  void begin(Exec& ex, const char* name, const ConstTensor& t, int detail = 0);
  void begin(Exec& ex, const ThreadGroup::Call& call);
  // From here on what the others have written so far can be read, and what they have read can be
  // overwritten.
  void meet(Exec& ex, const char* name);
  void wait(Exec& ex, const std::vector<ThreadGroup::Mark>& marks) const;
  // What the ranks brought: `count` elements of each, from `first` on.
  std::vector<ConstTensor> inputs(DType dtype, int64_t first, int64_t count) const;

  std::shared_ptr<ThreadGroup> group_;
  ThreadGroup::Limit limit_;
};

// Runs body(world) once on each of `size` threads and returns when all have ended. When one throws,
// the others are told at their next call or while they wait, and its exception is thrown again
// here.
void run_ranks(int size, ThreadGroup::Limit limit, FunctionRef<void(Communicator& world)> body);

}  // namespace bev
