// The norm of each logical parameter over all ranks that hold a part of it, whatever the layout.
#pragma once

#include <vector>

#include "base/function_ref.h"
#include "parallel/process_groups.h"
#include "param/param_store.h"

namespace bev {

// The elements of a parameter that this rank counts in norms: those that it owns, in its shard.
// Over all ranks each element of the logical parameter counts once.
std::vector<FlatRange> counted_ranges(const ParamStore& params, const FlatParam& place);

class ParamNorms {
 public:
  // Both must outlive this. All ranks of a world construct theirs together.
  ParamNorms(const ParamStore& params, ProcessGroups& groups);

  // A flat buffer in the order of the parameters: returns [begin, begin + count), a range within
  // this rank's shard.
  using FlatBuffer = FunctionRef<ConstTensor(int64_t begin, int64_t count)>;

  // squares[i] = the squared norm of the whole logical parameter params.all()[i], the same bits on
  // every rank that holds a part of it.  squares f64 [params.all().size()]
  void squared_norms(Exec& ex, FlatBuffer buffer, Tensor squares) const;

 private:
  struct Counted {
    FlatRange range;
    int64_t row;  // of the table
  };
  struct SharedRow {
    int64_t row;
    Communicator* holders;
  };
  std::vector<Counted> counted_;
  std::vector<SharedRow> shared_;
  Communicator& stage_;  // all ranks with this one's pipeline coordinate
};

}  // namespace bev
