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
  ConstTensor enter(Exec& ex, ConstTensor x) const { return enter(ex, x, ex.scratch); }
  Tensor partial_for(Exec& ex, Tensor out) const;          // where the partial result is written
  void leave(Exec& ex, Tensor partial, Tensor out) const;  // sums the partial results into out

  ConstTensor leave_backward(Exec& ex, ConstTensor dy, Arena& arena) const {
    return enter(ex, dy, arena);
  }
  void enter_backward(Exec& ex, Tensor partial, Tensor dx) const { leave(ex, partial, dx); }

  // Between regions: how many of the rows this member has, and its rows of a whole tensor.
  int64_t rows_here(int64_t rows) const;
  ConstTensor rows_of(ConstTensor whole) const;

  // Whether the vocabulary is cut over several members; and what they have of it, one after the
  // other [members, ...], in scratch.
  bool cuts_vocabulary() const { return tensor_.size() > 1; }
  ConstTensor gather_parts(Exec& ex, ConstTensor part) const;

  // Whether all members hold the same between regions, so that each need keep a part of it only;
  // this member's part, in ex.keep; and the whole of this shape, from the parts of all.
  bool holds_copies() const { return tensor_.size() > 1 && !sequence_; }
  ConstTensor keep_part(Exec& ex, ConstTensor copy) const;
  ConstTensor whole_of(Exec& ex, ConstTensor part, const Shape& shape, Arena& arena) const;

  // Whether a partial result has the rows of what leave() makes of it: what belongs to those can
  // then be added before.
  bool keeps_rows() const { return !sequence_ || tensor_.size() == 1; }

  // What is added once to a sum over the region: t itself for one member, absent for the others.
  ConstTensor once(ConstTensor t) const { return tensor_.rank() == 0 ? t : ConstTensor{}; }

 private:
  Communicator& tensor_;
  bool sequence_;
};

}  // namespace bev
