// The ranks whose micro-batches are one batch for a loss that compares its sequences with each
// other: the shard group.
#pragma once

#include "comm/communicator.h"
#include "device/exec.h"

namespace bev {

class BatchRegion {
 public:
  explicit BatchRegion(Communicator& shards) : shards_(shards) {}

  // The number of rows of all members, if each has `rows`.
  int64_t all_rows(int64_t rows) const { return rows * shards_.size(); }
  // Where this member's rows begin among all of them.
  int64_t first_row(int64_t rows) const { return rows * shards_.rank(); }

  // The rows of all members, in scratch.
  ConstTensor all_gather(Exec& ex, ConstTensor rows) const {
    if (shards_.size() == 1) return rows;
    const Tensor all =
        ex.scratch.allocate({all_rows(rows.rows()), rows.shape[1]}, rows.dtype, "region.batch");
    shards_.all_gather(ex, rows, all);
    return all;
  }
  // Each member has a term of every row of all members: the sums of this member's rows, in scratch.
  ConstTensor reduce_scatter(Exec& ex, ConstTensor all) const {
    if (shards_.size() == 1) return all;
    const Tensor rows =
        ex.scratch.allocate({all.rows() / shards_.size(), all.shape[1]}, all.dtype, "region.batch");
    shards_.reduce_scatter(ex, all, rows);
    return rows;
  }

 private:
  Communicator& shards_;
};

}  // namespace bev
