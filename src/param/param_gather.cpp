#include "param/param_gather.h"

#include <algorithm>

namespace bev {

void Leases::gather(Exec& ex, int bucket) {
  for (const FlatSection& section : params_.sections()) {
    if (section.bucket != bucket) continue;
    const FlatRange share = params_.share_of(section);
    data_.all_gather(ex, params_.value_range(share.begin, share.count),
                     params_.is_divided() ? params_.passing(section)
                                          : params_.value_range(section.begin, section.count));
  }
}

void Leases::begin_pass(std::span<const int> order) {
  places_ = {};
  coming_ = order;
}

// While a bucket is used, the next one comes into the other memory: what was there before is used
// no more.
void Leases::gather_ahead(Exec& ex, int bucket) {
  const auto here = std::find(coming_.begin(), coming_.end(), bucket);
  if (!overlaps() || here == coming_.end()) return;
  coming_ = coming_.subspan(static_cast<size_t>(here - coming_.begin()) + 1);
  if (coming_.empty()) return;
  const int next = coming_.front();
  Place& place = place_of(next);
  if (&place == &place_of(bucket) || place.holds == next) return;
  Exec beside = ex.beside(ex.device.exchange_stream());
  gather(beside, next);
  place = {next, beside.stream.record()};
}

void Leases::need(Exec& ex, int bucket) {
  if (!params_.is_divided()) {
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
    gather(ex, bucket);
    place.holds = bucket;
  }
  gather_ahead(ex, bucket);
}

void Leases::renew(Exec& ex) {
  if (params_.is_divided()) {
    begin_pass({});
    return;
  }
  if (params_.layout().zero == 0) return;
  Exec beside = overlaps() ? ex.beside(ex.device.exchange_stream()) : ex;
  int last = kNone;
  for (const FlatSection& section : params_.sections()) {
    if (section.bucket == last) continue;
    last = section.bucket;
    gather(beside, last);
    if (overlaps()) on_the_way_[last] = beside.stream.record();
  }
}

}  // namespace bev
