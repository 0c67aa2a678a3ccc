// The weights that a store holds, to be written.
#pragma once

#include "convert/weight_source.h"
#include "param/param_store.h"

namespace bev {

class StoreWeights final : public WeightSource {
 public:
  // REQUIRES: the store outlives this. An Internal error says of a parameter that it is cut over
  // ranks: only a whole model can be read.
  explicit StoreWeights(const ParamStore& params);

  DType dtype_of(const ParamSpec& spec) override;
  void read(const ParamSpec& spec, const Rectangle& where, DType dtype, std::byte* to) override;
  void check_all_used() override {}  // there is nothing else in a store

 private:
  const Param& param(const ParamSpec& spec) const;

  const ParamStore& params_;
};

}  // namespace bev
