// The parameters one rank holds, their values in one flat buffer; or this rank's shares of them,
// and memory in which they are gathered bucket by bucket (param_gather.h).
#pragma once

#include <array>
#include <deque>
#include <span>

#include "base/function_ref.h"
#include "device/memory.h"
#include "param/param_spec.h"
#include "tensor/tensor.h"

namespace bev {

struct Param {
  ParamSpec spec;
  Tensor value{};               // compute dtype
  Tensor grad{};                // accumulation dtype; set by GradBuffer
  std::vector<Piece> pieces{};  // of spec.parts, as held here
  int bucket = 0;               // whose gradients are finished together

  // Whether this step has written grad. A matrix's first GEMM of a step overwrites instead of
  // adding to zeros, which saves a pass over all gradients.
  bool grad_started = false;

  // Returns whether a writer must add to grad, and counts it as started.
  bool accumulate() {
    const bool started = grad_started;
    grad_started = true;
    return started;
  }
};

// A parameter's place in flat buffers laid out like a store: of `count` elements, the parameter has
// the first; the rest is the gap before the next.
struct FlatParam {
  Param* param;
  int64_t begin, count;
};

// A run of the flat order.
struct FlatRange {
  int64_t begin, count;
  int64_t end() const { return begin + count; }
};

// One that ranks which share the batch divide evenly; of one kind of bucket.
struct FlatSection : FlatRange {
  int bucket;
};

class ParamStore {
 public:
  // The device must outlive the store.
  ParamStore(Device& device, const ParallelLayout& layout, int rank, DType dtype);

  // What is declared from now on has its gradients finished together.
  int begin_bucket() { return ++bucket_; }
  // The reference stays valid. The value has memory only after allocate().
  Param& declare(ParamSpec spec);

  // One buffer for all values, in the flat order. A tied parameter shares the memory of the one it
  // names.
  void allocate();

  // Fills the values: the same model for every layout, because each element is drawn by its name
  // and logical index.
  void initialize(uint64_t seed);

  // A step begins: the gradients of matrices are not there yet, those of vectors are zero.
  void begin_gradients();

  // Owned and distinct: tied parameters are seen once, in declaration order.
  std::span<Param* const> unique_params() const { return distinct_; }
  Param* find(const std::string& name);

  int64_t elements() const;  // of distinct parameters, on this rank
  DType dtype() const { return dtype_; }
  Device& device() const { return device_; }
  const ParallelLayout& layout() const { return layout_; }
  const RankGrid& grid() const { return grid_; }
  int rank() const { return rank_; }

  // The flat order, known after allocate(): all matrices, then all vectors: those that are cut,
  // those that all tensor ranks hold with the same gradient, those whose gradients they sum; each
  // in declaration order. What is done to one of these kinds alone is so one pass over one range.
  // The places follow each other without gaps and begin at multiples of kFlatAlignment elements.
  // Where buckets are summed one by one (ParallelLayout::buckets_gradients), this holds in each
  // bucket, and the buckets follow each other.
  std::span<const FlatParam> flat() const { return flat_; }
  int64_t flat_elements() const;
  // The values of a flat range. REQUIRES: with divided parameters, within one share.
  Tensor value_range(int64_t begin, int64_t count) const;
  // All matrices, all vectors (of a bucket): those of the two that there are.
  std::span<const FlatSection> sections() const { return sections_; }
  // Whether values are divided over the ranks that share the batch; then, where a section's
  // parameters have their values when they are gathered.
  bool is_sharded() const { return layout_.zero >= 3; }
  Tensor staging(const FlatSection& section) const;
  // Memory in which buckets pass: neighbours in the order of declaration take turns where there are
  // two.
  struct StagingLayout {
    std::vector<size_t> begins;     // of each section, in the memory of its bucket
    std::array<size_t, 2> bytes{};  // of the memories; the second may be empty
  };
  static size_t staging_slot(int bucket, bool double_buffers) {
    return double_buffers ? static_cast<size_t>(bucket % 2) : 0;
  }
  // `bytes_of`: of a section, by its index.
  StagingLayout plan_staging(bool double_buffers, FunctionRef<size_t(size_t)> bytes_of) const;
  // The part of a section that belongs to this rank where ranks that share the batch divide it.
  FlatRange shard_of(const FlatRange& section) const;

  static constexpr int64_t kFlatAlignment = 64;

 private:
  Device& device_;
  ParallelLayout layout_;
  RankGrid grid_;
  int rank_;
  DType dtype_;
  std::deque<Param> params_;
  std::vector<Param*> distinct_;
  std::vector<FlatParam> flat_;
  std::vector<FlatSection> sections_;
  int bucket_ = 0;
  Buffer values_;
  std::array<Buffer, 2> passing_memory_;
  std::vector<int64_t> share_begins_;  // of each section, among the shares; in elements
  StagingLayout passing_;

  void place_flat();
  void place_shares();
  size_t section_at(int64_t begin) const;
  void fill(Param& param, std::byte* data, uint64_t seed, ThreadPool& pool) const;
  void put_share(const FlatParam& place, const std::byte* data);
};

// The name with layer numbers replaced by '*': parameters of one kind share it.
std::string param_kind(const std::string& name);

}  // namespace bev
