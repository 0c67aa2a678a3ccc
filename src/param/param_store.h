// The parameters that one rank holds. Their values are in one flat buffer; or the rank keeps its
// shards of them and gathers them bucket by bucket into staging memory (param_gather.h).
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <span>
#include <string_view>

#include "base/function_ref.h"
#include "device/memory.h"
#include "param/param_spec.h"
#include "tensor/tensor.h"

namespace bev {

struct Param {
  ParamSpec spec;
  Tensor value{};               // compute dtype
  Tensor grad{};                // accumulation dtype; set by GradBuffer
  std::vector<Piece> pieces{};  // one per part
  int bucket = 0;               // parameters of a bucket have their gradients finished together

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

// The place of a parameter in the flat order: `count` elements, of which the parameter has the
// first; the rest is the gap before the next one.
struct FlatParam {
  Param* param;
  int64_t begin, count;
};

// A run of the flat order.
struct FlatRange {
  int64_t begin = 0, count = 0;
  int64_t end() const { return begin + count; }
};

// Empty if they do not overlap.
inline FlatRange intersection(const FlatRange& a, const FlatRange& b) {
  const int64_t begin = std::max(a.begin, b.begin), end = std::min(a.end(), b.end());
  return {begin, std::max<int64_t>(0, end - begin)};
}

// How the ranks of a shard group divide a section: into equal shards, or by whole parameters, which
// may leave shards empty.
enum class ShardRule : uint8_t { Equal, WholeParams };
using ShardRuleOf = ShardRule (*)(Role);

// The matrices or the vectors of one bucket, grid and shard rule. Its shard group sums and shards
// it.
struct FlatSection : FlatRange {
  int bucket = 0;
  GroupKey group{};
  std::vector<int64_t> bounds{};  // shard r is [bounds[r], bounds[r + 1]) of the section
  size_t index = 0;               // of this rank's shard: its rank in the group

  FlatRange shard() const { return {begin + bounds[index], bounds[index + 1] - bounds[index]}; }
};

// The elements of a rectangle of the parameter before training, row by row without gaps.
void initial_values(const ParamSpec& spec, uint64_t seed, const Rectangle& where, DType dtype,
                    std::byte* to);

class ParamStore {
 public:
  // The device must outlive the store. `rule` is null: Equal for all roles. Parameters on several
  // stages always have equal shards: all holders need the same bounds.
  ParamStore(Device& device, const ParallelLayout& layout, int rank, DType dtype,
             ShardRuleOf rule = nullptr);

  // The pipeline coordinates of the holders of parameters that several stages may declare, by name.
  // REQUIRES: before any is declared; the same on all ranks.
  void set_holders(std::map<std::string, std::vector<int>> holders) {
    holders_ = std::move(holders);
  }
  // Parameters declared from now on have their gradients finished together.
  int begin_bucket() { return ++bucket_; }
  // The reference stays valid. The value has memory only after allocate().
  Param& declare(ParamSpec spec);
  // In its own bucket; the parameter of this name if it is declared already (a tied head).
  Param& declare_in_own_bucket(ParamSpec spec);

  // One buffer for all values, in the flat order.
  void allocate();

  // Fills the values, as initial_values(). They do not depend on the layout: each element is drawn
  // by the name of the parameter and its logical index.
  void initialize(uint64_t seed);

  // Starts a step: matrices have no gradient yet, vectors have a zero gradient.
  void begin_gradients();

  // In declaration order.
  std::span<Param* const> all() const { return all_; }
  Param* find(std::string_view name) const;

  int64_t elements() const;  // on this rank
  DType dtype() const { return dtype_; }
  Device& device() const { return device_; }
  const ParallelLayout& layout() const { return layout_; }
  int rank() const { return rank_; }
  // This rank's index in its shard group.
  size_t shard_index(GridKind grid = GridKind::Dense) const;

  // The flat order, known after allocate(): by grid and shard rule, matrices before vectors; with
  // WholeParams by owner; of the vectors those that are cut, those whose gradients agree on all
  // tensor ranks, those whose gradients tensor ranks sum; then in declaration order. One pass over
  // one range handles all of a kind. The places follow each other without gaps and begin at
  // multiples of kFlatAlignment elements. If buckets are reduced one by one
  // (ParallelLayout::buckets_gradients), buckets follow each other and each has this order.
  std::span<const FlatParam> flat() const { return flat_; }
  int64_t flat_elements() const;
  // The values of a flat range. REQUIRES: with sharded parameters, within one shard.
  Tensor value_range(int64_t begin, int64_t count) const;
  std::span<const FlatSection> sections() const { return sections_; }
  const FlatSection& section_of(int64_t flat_element) const {
    return sections_[section_at(flat_element)];
  }
  // True if a rank keeps only its shards of the values; staging() is then where a section's
  // parameters have their values after a gather.
  bool is_sharded() const { return layout_.zero >= 3; }
  Tensor staging(const FlatSection& section) const;
  // Staging memory: one slot for all buckets, or two for even and odd ones.
  struct StagingLayout {
    std::vector<size_t> begins;     // offsets of the sections in the slots of their buckets
    std::array<size_t, 2> bytes{};  // of the slots; the second may be empty
  };
  static size_t staging_slot(int bucket, bool double_buffers) {
    return double_buffers ? static_cast<size_t>(bucket % 2) : 0;
  }
  // `bytes_of`: of a section, by its index.
  StagingLayout plan_staging(bool double_buffers, FunctionRef<size_t(size_t)> bytes_of) const;

  static constexpr int64_t kFlatAlignment = 64;

 private:
  Device& device_;
  ParallelLayout layout_;
  int rank_;
  DType dtype_;
  ShardRuleOf rule_;
  std::map<std::string, std::vector<int>> holders_;
  std::deque<Param> params_;
  std::vector<Param*> all_;
  std::vector<FlatParam> flat_;
  std::vector<FlatSection> sections_;
  int bucket_ = 0;
  Buffer values_;
  std::array<Buffer, 2> staging_memory_;
  std::vector<int64_t> shard_begins_;  // offsets of the sections' shards in values_, in elements
  StagingLayout staging_;

  ShardRule rule_of(const Param& param) const;
  std::map<const Param*, size_t> whole_param_owners() const;
  void place_flat();
  void add_section(std::span<const FlatParam> places, const std::map<const Param*, size_t>& owners);
  void place_shards();
  size_t section_at(int64_t begin) const;
  void fill(Param& param, std::byte* data, uint64_t seed, ThreadPool& pool) const;
  void put_shard(const FlatParam& place, const std::byte* data);
};

// The rows of a piece in the flat order. REQUIRES: the parameter is cut by rows.
FlatRange rows_of(const FlatParam& place, const Piece& piece);
// The runs of a parameter that this rank owns (owned_pieces): all of it with the gap after it, or
// the rows of some pieces.
std::vector<FlatRange> owned_ranges(const ParamStore& params, const FlatParam& place);
// Parameters that several stages hold, in the order of their names, the only order that all holders
// have in common.
std::vector<const FlatParam*> shared_params(const ParamStore& params);

// The name with layer numbers replaced by '*', common to the parameters of one kind.
std::string param_kind(const std::string& name);

}  // namespace bev
