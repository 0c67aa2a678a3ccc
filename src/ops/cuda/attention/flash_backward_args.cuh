// What the kernels of attention's backward on tensor cores are told.
#pragma once

#include "ops/cuda/attention/attention_problem.cuh"
#include "ops/cuda/attention/flash_tiles.cuh"
#include "ops/cuda/attention/softmax_delta.h"

namespace bev::cuda {

template <class T>
struct BackwardArgs {
  AttentionProblem p;
  HeadRows<const T> dout, q, k, v;
  HeadRows<T> dq, dk, dv;
  const QuerySums* rows;
  bool wide, pairs;  // the inputs have wide rows; the results can be written in pairs
};

template <class T>
BackwardArgs<T> backward_args(const ops::AttentionBackward& a, const QuerySums* rows) {
  return {.p = problem_of(a),
          .dout = head_rows<T>(a.dout),
          .q = head_rows<T>(a.q),
          .k = head_rows<T>(a.k),
          .v = head_rows<T>(a.v),
          .dq = head_rows<T>(a.dq),
          .dk = head_rows<T>(a.dk),
          .dv = head_rows<T>(a.dv),
          .rows = rows,
          .wide = has_wide_rows(a.q) && has_wide_rows(a.k) && has_wide_rows(a.v) &&
                  has_wide_rows(a.dout),
          .pairs = has_paired_rows(a.dq) && has_paired_rows(a.dk) && has_paired_rows(a.dv)};
}

}  // namespace bev::cuda
