// The borders of a tensor-parallel region and their duals.
//
//                     one rank      tensor               tensor + sequence
//   enter             as it is      as it is             all-gather rows
//   leave             as it is      all-reduce           reduce-scatter rows
//   enter_backward    = leave of the gradient            leave_backward = enter of the gradient
#pragma once

#include "comm/communicator.h"
#include "device/exec.h"

namespace bev {

class TensorRegion {
 public:
  TensorRegion(Communicator& tensor, bool sequence) : tensor_(tensor), sequence_(sequence) {}

  // x itself, or gathered into the arena.
  ConstTensor enter(Exec& ex, ConstTensor x, Arena& arena) const;
  // The same on Device::tensor_stream(), overlapped with later work until end_enter().
  struct Entering {
    ConstTensor whole;
    Event ready{};
  };
  Entering begin_enter(Exec& ex, ConstTensor x, Arena& arena) const;
  void end_enter(Exec& ex, const Entering& entering) const {
    ex.wait("wait for tokens", entering.ready);
  }
  // Rows inside the region of a tensor with `rows` rows between regions.
  int64_t region_rows(int64_t rows) const {
    return rows_unchanged() ? rows : rows * tensor_.size();
  }
  Tensor partial_buffer(Exec& ex, Tensor out) const;       // where the partial result is written
  void leave(Exec& ex, Tensor partial, Tensor out) const;  // sums the partial results into out

  ConstTensor leave_backward(Exec& ex, ConstTensor dy, Arena& arena) const {
    return enter(ex, dy, arena);
  }
  void enter_backward(Exec& ex, Tensor partial, Tensor dx) const { leave(ex, partial, dx); }

  // Between regions: how many of the rows this member has, and its rows of a whole tensor.
  int64_t local_row_count(int64_t rows) const;
  ConstTensor local_rows(ConstTensor whole) const;

  // Whether the vocabulary is cut over several members; and what they have of it, one after the
  // other [members, ...], in scratch.
  bool vocab_is_sharded() const { return tensor_.size() > 1; }
  ConstTensor all_gather_parts(Exec& ex, ConstTensor part) const;

  // Whether all members hold the same between regions, so that each need keep a part of it only;
  // this member's part, in ex.keep; and the whole of this shape, from the parts of all.
  bool is_replicated() const { return tensor_.size() > 1 && !sequence_; }
  ConstTensor save_shard(Exec& ex, ConstTensor copy) const;
  ConstTensor gather_shards(Exec& ex, ConstTensor part, const Shape& shape, Arena& arena) const;

  // Whether a partial result has the rows of what leave() makes of it: what belongs to those can
  // then be added before.
  bool rows_unchanged() const { return !sequence_ || tensor_.size() == 1; }

  // What is added once to a sum over the region: t itself for one member, absent for the others.
  ConstTensor on_one_member(ConstTensor t) const { return tensor_.rank() == 0 ? t : ConstTensor{}; }

 private:
  Communicator& tensor_;
  bool sequence_;
};

}  // namespace bev
