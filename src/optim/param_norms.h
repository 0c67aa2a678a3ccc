// Norms of parameters over all ranks that hold a part of them: of the logical parameter, whatever
// the layout, or of a tensor rank's shard of it.
#pragma once

#include <vector>

#include "base/function_ref.h"
#include "config/choices.h"
#include "parallel/process_groups.h"
#include "param/param_store.h"

namespace bev {

// The elements of a parameter that this rank counts in norms: those that it owns, in its shard.
// Over all ranks each element of the logical parameter counts once.
std::vector<FlatRange> counted_ranges(const ParamStore& params, const FlatParam& place);

class ParamNorms {
 public:
  // Both must outlive this. All ranks of a world construct theirs together.
  ParamNorms(const ParamStore& params, ProcessGroups& groups, NormScope scope = NormScope::Whole);

  // The elements that this rank counts, without gaps between parameters.
  struct Counted {
    FlatRange range;
    int64_t row;  // index in params.all()
  };
  const std::vector<Counted>& counted() const { return counted_; }

  // Makes sums of this rank's counted elements sums over all ranks, the same bits on every rank
  // that holds a part of the parameter.  sums f64 [params.all().size(), n]
  void all_reduce(Exec& ex, Tensor sums) const;

  // A flat buffer in the order of the parameters: returns [begin, begin + count), a range within
  // this rank's shard.
  using FlatBuffer = FunctionRef<ConstTensor(int64_t begin, int64_t count)>;

  // squares[i] = the squared norm of parameter params.all()[i].  squares f64 [params.all().size()]
  void squared_norms(Exec& ex, FlatBuffer buffer, Tensor squares) const;

 private:
  struct SharedRow {
    int64_t row;
    Communicator* holders;
  };
  std::vector<Counted> counted_;
  std::vector<SharedRow> shared_;
  Communicator& ranks_;  // of this stage: their counted elements make up the parameters
};

}  // namespace bev
