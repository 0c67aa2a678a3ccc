#include "param/leases.h"

namespace bev {

void Leases::need(Exec& ex, int bucket) {
  if (bucket == held_ || !params_.is_divided()) return;
  for (const FlatSection& section : params_.sections()) {
    if (section.bucket != bucket) continue;
    const FlatRange share = params_.share_of(section);
    data_.all_gather(ex, params_.value_range(share.begin, share.count), params_.passing(section));
  }
  held_ = bucket;
}

}  // namespace bev
