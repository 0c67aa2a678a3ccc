// Moving tensors among ranks. Knows no model.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/activity.h"
#include "base/function_ref.h"
#include "device/exec.h"
#include "ops/reduce.h"

namespace bev {

enum class Channel : uint8_t { Forward, Backward };  // independent ordered pipes between two ranks

// A tensor on its way.
struct SendTicket {
  int to = -1;
  Channel channel{};
  uint64_t number = 0;  // of those sent there so far

  bool present() const { return to >= 0; }
};

// Moves tensors among size() ranks. Calls are ordered on exec.stream like kernels; all ranks must
// make the same calls in the same order. With one rank every call is a copy or nothing.
//
// The public functions check shapes and dtypes and count bytes; the private ones move data. Element
// counts and types come from the tensors, never from the caller.
class Communicator {
 public:
  using Counts = std::span<const int64_t>;

  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // To other ranks, by this one, so far.
  double bytes_sent() const { return bytes_sent_; }
  // Names this group in records of cost (OpCost::group); 0: no label. A plan sets it; groups that
  // a planning communicator splits off inherit it.
  uint16_t label() const { return label_; }
  void set_label(uint16_t label) { label_ = label; }

  void all_reduce(Exec& ex, Tensor inout, ReduceOp op = ReduceOp::Sum);
  void all_gather(Exec& ex, ConstTensor shard, Tensor whole);      // concatenates along dim 0
  void reduce_scatter(Exec& ex, ConstTensor whole, Tensor shard);  // sums, keeps this rank's rows
  // Shards of unequal size: rank r has the rows [bounds[r], bounds[r + 1]) of the whole. A shard
  // may be empty. All ranks pass the same size() + 1 bounds, from 0 to the rows of the whole.
  void all_gather(Exec& ex, ConstTensor shard, Tensor whole, Counts bounds);
  void reduce_scatter(Exec& ex, ConstTensor whole, Counts bounds, Tensor shard);
  // Block r of `in` goes to rank r; block r of `out` comes from rank r. All blocks have the same
  // number of rows. The tensors must not overlap.
  void all_to_all(Exec& ex, ConstTensor in, Tensor out);
  // Blocks of unequal size: rows_to[r] rows of `in` go to rank r, rows_from[r] rows of `out` come
  // from rank r. Counts may be 0; rank a's rows_to[b] must equal rank b's rows_from[a].
  void all_to_all(Exec& ex, ConstTensor in, Counts rows_to, Tensor out, Counts rows_from);
  void broadcast(Exec& ex, Tensor inout, int root);

  // Posted: returns at once. The tensor must stay as it is until await() of what is returned.
  [[nodiscard]] SendTicket send(Exec& ex, ConstTensor tensor, int to, Channel channel);
  // What comes on the stream after this may overwrite the tensor; nothing to do when absent.
  void wait_send(Exec& ex, const SendTicket& sent);
  // Waits (on the stream) for the next tensor of that channel.
  void recv(Exec& ex, Tensor tensor, int from, Channel channel);

  void barrier(std::chrono::seconds limit) { do_barrier(limit); }
  // Neighbours in the ring of ranks may send to each other from now on. All ranks call it together,
  // before the first send.
  virtual void connect_neighbours() {}
  // The largest of what the ranks bring, at once: nothing on a device is involved.
  virtual int64_t all_reduce_max_host(int64_t here) = 0;

  // This rank cannot go on: whoever waits for it, now or later, gets an error that says why. When
  // this returns, nobody reads memory of this rank any more.
  virtual void abort(const std::string& /*why*/) {}
  virtual std::unique_ptr<Communicator> split(std::span<const int> ranks) = 0;

 protected:
  Communicator(int rank, int size);
  // From now on, collectives with `peers` are reported to `activity`, which outlives this.
  void report_to(Activity& activity, std::string peers);

 private:
  virtual void do_all_reduce(Exec& ex, Tensor inout, ReduceOp op) = 0;
  // These three get tensors of one dimension: bounds and counts are in elements.
  virtual void do_all_gather(Exec& ex, ConstTensor shard, Tensor whole, Counts bounds) = 0;
  virtual void do_reduce_scatter(Exec& ex, ConstTensor whole, Counts bounds, Tensor shard) = 0;
  virtual void do_all_to_all(Exec& ex, ConstTensor in, Counts to, Tensor out, Counts from) = 0;
  virtual void do_broadcast(Exec& ex, Tensor inout, int root) = 0;
  virtual uint64_t do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) = 0;
  virtual void do_await(Exec& ex, const SendTicket& sent) = 0;
  virtual void do_recv(Exec& ex, Tensor tensor, int from, Channel channel) = 0;
  virtual void do_barrier(std::chrono::seconds limit) = 0;

  // Both take checked tensors and use bounds_.
  void gather_shards(Exec& ex, const ConstTensor& shard, const Tensor& whole);
  void scatter_sums(Exec& ex, const ConstTensor& whole, const Tensor& shard);
  void set_even_bounds(int64_t elements);
  void set_bounds(Counts rows, int64_t width);

  // `operand`: the tensor that names the record's shape.
  void count(Exec& ex, const char* call, const ConstTensor& operand, double bytes);
  // Runs `exchange`: told, traced and metered.
  void pass(Exec& ex, const char* what, size_t bytes, FunctionRef<void(Exec& ex)> exchange);

  int rank_, size_;
  uint16_t label_ = 0;
  double bytes_sent_ = 0;
  // Bounds and counts for the private functions. Members, so that a call allocates nothing.
  std::vector<int64_t> bounds_, to_, from_;
  std::vector<int64_t> even_rows_;
  Activity* activity_ = nullptr;
  std::string peers_;
};

// Few words from one rank to all, without tensors.

// What `root` brings, on every rank. All ranks together. Slow: for news, not for data.
std::string broadcast_text(Communicator& ranks, const std::string& here, int root);

// The world of one rank: ordinary runs on one device.

class SingleCommunicator final : public Communicator {
 public:
  SingleCommunicator() : Communicator(0, 1) {}
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override;
  int64_t all_reduce_max_host(int64_t here) override { return here; }

 private:
  void do_all_reduce(Exec&, Tensor, ReduceOp) override {}
  void do_all_gather(Exec& ex, ConstTensor shard, Tensor whole, Counts bounds) override;
  void do_reduce_scatter(Exec& ex, ConstTensor whole, Counts bounds, Tensor shard) override;
  void do_all_to_all(Exec& ex, ConstTensor in, Counts to, Tensor out, Counts from) override;
  void do_broadcast(Exec&, Tensor, int) override {}
  uint64_t do_send(Exec& ex, ConstTensor tensor, int to, Channel channel) override;
  void do_await(Exec&, const SendTicket&) override {}
  void do_recv(Exec& ex, Tensor tensor, int from, Channel channel) override;
  void do_barrier(std::chrono::seconds) override {}
};

}  // namespace bev
