// The weights of a whole model under the names of its parameters, wherever and however they are
// stored. What copies them reads them part by part and never holds the model.
#pragma once

#include <cstddef>
#include <string_view>

#include "param/param_spec.h"
#include "param/param_store.h"
#include "tensor/dtype.h"
#include "tensor/rectangle.h"

namespace bev {

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // What a parameter is stored in. Data error when it is missing, has another shape or is stored in
  // a type that this program cannot read.
  virtual DType dtype_of(const ParamSpec& spec) = 0;

  // The elements of a rectangle of the parameter, converted, row by row without gaps. Rows of a
  // vocabulary that are not stored are zeros. Data error as above.
  virtual void read(const ParamSpec& spec, const Rectangle& where, DType dtype, std::byte* to) = 0;

  // That nothing is stored that no parameter asked for. REQUIRES: all were asked for.
  virtual void check_all_used() = 0;
};

// How much of a tensor is in memory at a time while it is copied. Blocks of a matrix that is turned
// on the way read all of its rows, so that small ones would read it often.
inline constexpr size_t kUsualBlockBytes = size_t{64} << 20;

// Filling a store with weights from anywhere.

// Each rank reads the pieces it holds. Where the store has no memory, only whether all is there is
// checked. Master weights of an optimizer are not touched: refresh them afterwards.
void load_weights(WeightSource& source, ParamStore& params);

// The weights that a store holds, to be written.

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
