// Table look-up and its gradient.
#pragma once

#include "device/exec.h"

namespace bev::ops {

// out[t] = table[ids[t] - row_begin] [+ out[t]]; an id outside the rows held gives zeros (another
// rank holds it).  table [rows, width]; ids i32 [tokens]; out [tokens, width]
struct Embedding {
  ConstTensor table, ids;
  int64_t row_begin = 0;
  bool accumulate = false;
  Tensor out;
};
void embedding(Exec& ex, const Embedding& e);

// dtable[ids[t] - row_begin] += dout[t], in the order of t: deterministic.
// dtable of the accumulation type, or (cuda) of dout's: the sum of a call is rounded once.
struct EmbeddingBackward {
  ConstTensor dout, ids;
  int64_t row_begin = 0;
  Tensor dtable;
};
void embedding_backward(Exec& ex, const EmbeddingBackward& e);

}  // namespace bev::ops
