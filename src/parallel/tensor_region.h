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
  int64_t first_local_row(int64_t rows) const {
    return rows_unchanged() ? 0 : tensor_.rank() * local_row_count(rows);
  }
  // Sums a tensor of which each member has a term; if rows are sharded between regions, one of
  // which each member has some rows and zeros.
  void sum_terms(Exec& ex, Tensor t) const {
    if (tensor_.size() > 1) tensor_.all_reduce(ex, t);
  }
  void sum_sharded_rows(Exec& ex, Tensor t) const {
    if (!rows_unchanged()) tensor_.all_reduce(ex, t);
  }

  // True if the vocabulary is sharded across several members. all_gather_parts returns the parts of
  // all members [members, ...], in scratch.
  bool vocab_is_sharded() const { return tensor_.size() > 1; }
  ConstTensor all_gather_parts(Exec& ex, ConstTensor part) const;

  // True if all members hold copies between regions, so that each may keep only a shard. save_shard
  // copies this member's shard to ex.keep; gather_shards returns the whole tensor of this shape.
  bool is_replicated() const { return tensor_.size() > 1 && !sequence_; }
  ConstTensor save_shard(Exec& ex, ConstTensor copy) const;
  ConstTensor gather_shards(Exec& ex, ConstTensor part, const Shape& shape, Arena& arena) const;

  // True if a partial result has the same rows as the result of leave(): a residual can then be
  // added to the partial result.
  bool rows_unchanged() const { return !sequence_ || tensor_.size() == 1; }

  // A term that is added once to a sum over the region: t for one member, absent for the others.
  ConstTensor on_one_member(ConstTensor t) const { return tensor_.rank() == 0 ? t : ConstTensor{}; }

 private:
  Communicator& tensor_;
  bool sequence_;
};

}  // namespace bev
