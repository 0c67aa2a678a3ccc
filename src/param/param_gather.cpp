#include "param/param_gather.h"

#include <algorithm>

namespace bev {

void ParamGather::gather_now(Exec& ex, int bucket) {
  for (const FlatSection& section : params_.sections()) {
    if (section.bucket != bucket) continue;
    const FlatRange share = params_.shard_of(section);
    data_.all_gather(ex, params_.value_range(share.begin, share.count),
                     params_.is_sharded() ? params_.staging(section)
                                          : params_.value_range(section.begin, section.count));
  }
}

void ParamGather::set_order(std::span<const int> order) {
  places_ = {};
  coming_ = order;
}

// While a bucket is used, the next one comes into the other memory: what was there before is used
// no more.
void ParamGather::prefetch_bucket(Exec& ex, int bucket) {
  const auto here = std::find(coming_.begin(), coming_.end(), bucket);
  if (!overlaps() || here == coming_.end()) return;
  coming_ = coming_.subspan(static_cast<size_t>(here - coming_.begin()) + 1);
  if (coming_.empty()) return;
  const int next = coming_.front();
  Place& place = place_of(next);
  if (&place == &place_of(bucket) || place.holds == next) return;
  Exec beside = ex.on_stream(ex.device.comm_stream());
  gather_now(beside, next);
  place = {next, beside.stream.record()};
}

void ParamGather::gather(Exec& ex, int bucket) {
  if (!params_.is_sharded()) {
    const auto found = on_the_way_.find(bucket);
    if (found == on_the_way_.end()) return;
    ex.wait("wait for parameters", found->second);
    on_the_way_.erase(found);
    return;
  }
  Place& place = place_of(bucket);
  ex.wait("wait for parameters", place.ready);
  place.ready = {};
  if (place.holds != bucket) {
    gather_now(ex, bucket);
    place.holds = bucket;
  }
  prefetch_bucket(ex, bucket);
}

void ParamGather::invalidate(Exec& ex) {
  if (params_.is_sharded()) {
    set_order({});
    return;
  }
  if (params_.layout().zero == 0) return;
  Exec beside = overlaps() ? ex.on_stream(ex.device.comm_stream()) : ex;
  int last = kNone;
  for (const FlatSection& section : params_.sections()) {
    if (section.bucket == last) continue;
    last = section.bucket;
    gather_now(beside, last);
    if (overlaps()) on_the_way_[last] = beside.stream.record();
  }
}

}  // namespace bev
