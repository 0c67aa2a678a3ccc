// The gradients of this rank in the flat order of the parameters: all of them in one buffer, or
// this rank's shards and staging memory for one bucket or two.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "config/choices.h"
#include "device/exec.h"
#include "param/param_store.h"

namespace bev {

class GradBuffer {
 public:
  // Gives every parameter its gradient tensor. The store must be allocated and outlive this. Bf16
  // stores matrix gradients in bf16. Vector gradients are few and precision-sensitive: f32.
  explicit GradBuffer(ParamStore& params, StatePrecision precision = StatePrecision::F32);

  // Before the first micro-batch of a step: vectors become zero; matrices are overwritten by their
  // first GEMM (Param::accumulate). Sharded gradients all become zero.
  void begin_step(Exec& ex);

  // The part that belongs to the flat range [begin, begin + count) of the store; gaps between
  // parameters are zero. REQUIRES: count > 0; one dtype; with sharded gradients, within adjacent
  // shards.
  Tensor range(int64_t begin, int64_t count) const;

  // With sharded gradients: the staging memory in which the parameters of the section have their
  // gradients. A slot holds the sections of a single bucket (ParamStore::staging_slot).
  Tensor staging(const FlatSection& section) const;
  bool double_buffers() const { return params_.layout().overlaps_grad_reduce; }
  // The largest shard of a section, with sharded gradients.
  size_t max_shard_bytes() const { return max_shard_bytes_; }

  DType dtype_of(const Param& param) const;

 private:
  ParamStore& params_;
  StatePrecision precision_;
  bool is_sharded() const { return params_.layout().zero >= 2; }
  void append_run(FlatRange range, DType dtype, std::byte* data);
  void keep_all();
  void keep_shards();

  Buffer buffer_;
  std::array<Buffer, 2> staging_memory_;
  size_t max_shard_bytes_ = 0;
  std::vector<Tensor> runs_;     // of one dtype and adjacent in the store
  std::vector<int64_t> begins_;  // of the runs in the store
  std::vector<Tensor> staging_;  // by section of the store
  std::vector<Tensor> vectors_;  // runs of them
};

}  // namespace bev
