// The formulas of one element that several ops share.
#pragma once

#include "config/choices.h"
#include "ops/dropout.h"

namespace bev::reference {

// The activation applied to the argument or, for a gated one, to the gate.
double activation_value(Activation activation, double x);
double activation_slope(Activation activation, double x);

// What dropout multiplies element (row, column) of the local tensor by: 0 or 1 / (1 - probability).
double dropout_factor(const ops::Dropout& dropout, int64_t row, int64_t column);

}  // namespace bev::reference
