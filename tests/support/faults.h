// Faults planted from outside: a rank whose n-th call to a communicator, or n-th sample, fails. The
// program under test has no part in it.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/error.h"
#include "comm/communicator.h"
#include "verify/layout_run.h"

namespace bev::test {

// Lets a number of events pass and throws at the next.
class Fuse {
 public:
  static constexpr int64_t kNever = -1;
  static constexpr const char* kMessage = "a fault that a test has planted";

  explicit Fuse(int64_t passing) : left_(passing) {}
  void burn() {
    if (left_.fetch_sub(1) == 0) throw Error(ErrorKind::Data, kMessage);
  }

 private:
  std::atomic<int64_t> left_;  // below 0: it has burnt, or never will
};

// The communicators of a rank, which have one fuse: every call to one of them burns it first.
class FaultyCommunicator final : public Communicator {
 public:
  FaultyCommunicator(Communicator& sound, std::shared_ptr<Fuse> fuse)
      : Communicator(sound.rank(), sound.size()), sound_(sound), fuse_(std::move(fuse)) {}

  void abort(const std::string& why) override { sound_.abort(why); }
  int64_t all_reduce_max_host(int64_t here) override { return sound().all_reduce_max_host(here); }
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override {
    parts_.push_back(sound_.split(ranks));
    return std::make_unique<FaultyCommunicator>(*parts_.back(), fuse_);
  }

 private:
  Communicator& sound() {
    fuse_->burn();
    return sound_;
  }
  void do_all_reduce(Exec& ex, Tensor inout, ReduceOp op) override {
    sound().all_reduce(ex, inout, op);
  }
  void do_all_gather(Exec& ex, ConstTensor shard, Tensor whole, Counts bounds) override {
    sound().all_gather(ex, shard, whole, bounds);
  }
  void do_reduce_scatter(Exec& ex, ConstTensor whole, Counts bounds, Tensor shard) override {
    sound().reduce_scatter(ex, whole, bounds, shard);
  }
  void do_all_to_all(Exec& ex, ConstTensor in, Counts to, Tensor out, Counts from) override {
    sound().all_to_all(ex, in, to, out, from);
  }
  void do_broadcast(Exec& ex, Tensor inout, int root) override {
    sound().broadcast(ex, inout, root);
  }
  uint64_t do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) override {
    return sound().send(ex, tensor, to, channel).number;
  }
  void do_await(Exec& ex, const SendTicket& sent) override { sound().wait_send(ex, sent); }
  void do_recv(Exec& ex, Tensor tensor, int from, Channel channel) override {
    sound().recv(ex, tensor, from, channel);
  }
  void do_barrier(std::chrono::seconds limit) override { sound().barrier(limit); }

  Communicator& sound_;
  std::shared_ptr<Fuse> fuse_;
  std::vector<std::unique_ptr<Communicator>> parts_;
};

class FaultySamples final : public Dataset {
 public:
  FaultySamples(int64_t vocab, int64_t passing) : sound_(vocab), fuse_(passing) {}
  void read(int64_t index, HostBatch& batch, int64_t at) const override {
    fuse_.burn();
    sound_.read(index, batch, at);
  }
  std::string describe(int64_t index) const override { return sound_.describe(index); }

 private:
  UnevenDataset sound_;
  mutable Fuse fuse_;
};

}  // namespace bev::test
