// All-gather of parameters over the ranks that shard them: after an update of sharded optimizer
// state, or before each use of sharded parameters.
#pragma once

#include <array>
#include <map>
#include <span>

#include "parallel/process_groups.h"
#include "param/param_store.h"

namespace bev {

class ParamGather {
 public:
  // Both must outlive this.
  ParamGather(ParamStore& params, ProcessGroups& groups) : params_(params), groups_(groups) {}

  // True if values are valid only after gather().
  bool gathers_on_demand() const {
    return params_.is_sharded() || (params_.layout().zero > 0 && overlaps());
  }

  // A pass is about to use these buckets in this order. Prefetches depend on nothing before it.
  void set_order(std::span<const int> order);
  // Later work on the stream sees the values of this bucket; with sharded parameters, those of no
  // other bucket. All ranks of the shard group call it together.
  void gather(Exec& ex, int bucket);
  // The shards have changed.
  void invalidate(Exec& ex);

 private:
  static constexpr int kNone = -1;
  // Staging memory. It holds one bucket.
  struct Slot {
    int bucket = kNone;
    Event ready{};  // absent: gathered on the compute stream
  };

  bool overlaps() const { return params_.layout().overlaps_param_gather; }
  Slot& slot_of(int bucket) { return slots_[ParamStore::staging_slot(bucket, overlaps())]; }
  void gather_now(Exec& ex, int bucket);
  void prefetch_bucket(Exec& ex, int bucket);

  ParamStore& params_;
  ProcessGroups& groups_;
  std::array<Slot, 2> slots_;       // with sharded parameters
  std::span<const int> coming_;     // buckets of the pass after the one gathered last
  std::map<int, Event> in_flight_;  // buckets, after an update
};

}  // namespace bev
