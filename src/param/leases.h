// Parameters that are divided over the ranks that share the batch: a bucket of them is gathered
// when it is needed.
#pragma once

#include "comm/communicator.h"
#include "param/store.h"

namespace bev {

class Leases {
 public:
  // Both must outlive this.
  Leases(ParamStore& params, Communicator& data) : params_(params), data_(data) {}

  // From here on, in the order of the stream, the values of this bucket are there, and those of no
  // other. All ranks that share the batch call it together.
  void need(Exec& ex, int bucket);
  // The shares have changed; or a pass begins, so that what it gathers depends on nothing before
  // it.
  void expire() { held_ = kNone; }

 private:
  static constexpr int kNone = -1;

  ParamStore& params_;
  Communicator& data_;
  int held_ = kNone;
};

}  // namespace bev
