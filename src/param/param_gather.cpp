#include "param/param_gather.h"

#include <algorithm>

namespace bev {

void ParamGather::gather_now(Exec& ex, int bucket) {
  for (const FlatSection& section : params_.sections()) {
    if (section.bucket != bucket) continue;
    const FlatRange shard = section.shard();
    const Tensor whole = params_.is_sharded() ? params_.staging(section)
                                              : params_.value_range(section.begin, section.count);
    groups_.over(section.group)
        .all_gather(ex, params_.value_range(shard.begin, shard.count), whole, section.bounds);
  }
}

void ParamGather::set_order(std::span<const int> order) {
  slots_ = {};
  coming_ = order;
}

// While a bucket is used, gathers the next one into the other slot.
void ParamGather::prefetch_bucket(Exec& ex, int bucket) {
  const auto here = std::find(coming_.begin(), coming_.end(), bucket);
  if (!overlaps() || here == coming_.end()) return;
  coming_ = coming_.subspan(static_cast<size_t>(here - coming_.begin()) + 1);
  if (coming_.empty()) return;
  const int next = coming_.front();
  Slot& slot = slot_of(next);
  if (&slot == &slot_of(bucket) || slot.bucket == next) return;
  Exec comm_ex = ex.on_stream(ex.device.comm_stream());
  gather_now(comm_ex, next);
  slot = {next, comm_ex.stream.record()};
}

void ParamGather::gather(Exec& ex, int bucket) {
  if (!params_.is_sharded()) {
    const auto found = in_flight_.find(bucket);
    if (found == in_flight_.end()) return;
    ex.wait("wait for parameters", found->second);
    in_flight_.erase(found);
    return;
  }
  Slot& slot = slot_of(bucket);
  ex.wait("wait for parameters", slot.ready);
  slot.ready = {};
  if (slot.bucket != bucket) {
    gather_now(ex, bucket);
    slot.bucket = bucket;
  }
  prefetch_bucket(ex, bucket);
}

void ParamGather::invalidate(Exec& ex) {
  if (params_.is_sharded()) {
    set_order({});
    return;
  }
  if (params_.layout().zero == 0) return;
  Exec comm_ex = overlaps() ? ex.on_stream(ex.device.comm_stream()) : ex;
  int last = kNone;
  for (const FlatSection& section : params_.sections()) {
    if (section.bucket == last) continue;
    last = section.bucket;
    gather_now(comm_ex, last);
    if (overlaps()) in_flight_[last] = comm_ex.stream.record();
  }
}

}  // namespace bev
