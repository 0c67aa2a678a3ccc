// Moving tensors among ranks. Knows no model.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "device/exec.h"

namespace bev {

enum class ReduceOp : uint8_t { Sum, Max, Min };
enum class Channel : uint8_t { Forward, Backward };  // independent ordered pipes between two ranks

// Moves tensors among size() ranks. Calls are ordered on exec.stream like kernels; all ranks must
// make the same calls in the same order. With one rank every call is a copy or nothing.
//
// The public functions check shapes and dtypes and count bytes; the private ones move data. Element
// counts and types come from the tensors, never from the caller.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  void all_reduce(Exec& ex, Tensor inout, ReduceOp op = ReduceOp::Sum);
  void all_gather(Exec& ex, ConstTensor shard, Tensor whole);      // concatenates along dim 0
  void reduce_scatter(Exec& ex, ConstTensor whole, Tensor shard);  // sums, keeps this rank's rows
  void broadcast(Exec& ex, Tensor inout, int root);

  // Posted: returns at once; the tensor must live until the matching slot is reused.
  void send(Exec& ex, ConstTensor tensor, int to, Channel channel);
  // Waits (on the stream) for the next tensor of that channel.
  void recv(Exec& ex, Tensor tensor, int from, Channel channel);

  void barrier(std::chrono::seconds limit) { do_barrier(limit); }
  virtual std::unique_ptr<Communicator> split(std::span<const int> ranks) = 0;

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}

 private:
  virtual void do_all_reduce(Exec& ex, Tensor inout, ReduceOp op) = 0;
  virtual void do_all_gather(Exec& ex, ConstTensor shard, Tensor whole) = 0;
  virtual void do_reduce_scatter(Exec& ex, ConstTensor whole, Tensor shard) = 0;
  virtual void do_broadcast(Exec& ex, Tensor inout, int root) = 0;
  virtual void do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) = 0;
  virtual void do_recv(Exec& ex, Tensor tensor, int from, Channel channel) = 0;
  virtual void do_barrier(std::chrono::seconds limit) = 0;

  int rank_, size_;
};

}  // namespace bev
