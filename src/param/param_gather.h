// Parameters whose values ranks that share the batch bring together: after an update, where each
// has updated its share; or whenever they are needed, where each keeps no more than its share.
#pragma once

#include <array>
#include <map>
#include <span>

#include "comm/communicator.h"
#include "param/param_store.h"

namespace bev {

class ParamGather {
 public:
  // Both must outlive this.
  ParamGather(ParamStore& params, Communicator& data) : params_(params), data_(data) {}

  // Whether values are there only after need().
  bool gathers_on_demand() const {
    return params_.is_sharded() || (params_.layout().zero > 0 && overlaps());
  }

  // Stages are about to need these buckets, one after the other. What they gather depends on
  // nothing before it.
  void set_order(std::span<const int> order);
  // From here on, in the order of the stream, the values of this bucket are there; with divided
  // parameters, those of no other. All ranks that share the batch call it together.
  void gather(Exec& ex, int bucket);
  // The shares have changed.
  void invalidate(Exec& ex);

 private:
  static constexpr int kNone = -1;
  // Memory that one of several buckets has at a time.
  struct Place {
    int holds = kNone;
    Event ready{};  // absent: in the order of the stream it is
  };

  bool overlaps() const { return params_.layout().overlaps_param_gather; }
  Place& place_of(int bucket) { return places_[ParamStore::staging_slot(bucket, overlaps())]; }
  void gather_now(Exec& ex, int bucket);
  void prefetch_bucket(Exec& ex, int bucket);

  ParamStore& params_;
  Communicator& data_;
  std::array<Place, 2> places_;      // with divided parameters
  std::span<const int> coming_;      // of the pass, behind what was needed last
  std::map<int, Event> on_the_way_;  // buckets, after an update
};

}  // namespace bev
