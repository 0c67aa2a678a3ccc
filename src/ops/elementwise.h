// Copies and fills.
#pragma once

#include "device/exec.h"

namespace bev::ops {

// out = in, converted to out's dtype. Same shape.
struct Copy {
  ConstTensor in;
  Tensor out;
};
void copy(Exec& ex, const Copy& c);

// Every element = value.
struct Fill {
  Tensor out;
  double value = 0;
};
void fill(Exec& ex, const Fill& f);

}  // namespace bev::ops
