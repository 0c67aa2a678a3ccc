// The check of a Dropout, which several ops carry.
#pragma once

#include "ops/dropout.h"
#include "ops/operands.h"

namespace bev::ops {

inline void check_dropout(const Operands& args, const Dropout& d, int64_t rows) {
  args.require(d.probability >= 0 && d.probability < 1, "dropout probability outside [0, 1)");
  args.require(d.column_begin >= 0, "dropout column_begin is negative");
  if (d.probability > 0) args.read("dropout.rows", d.rows, {rows}, DType::i64);
}

}  // namespace bev::ops
