// The part of the matrix product that is compiled once per instruction set: packing of operands
// into panels, and the product of packed panels. gemm.cpp decides what is packed and multiplied
// where. Lanes are the rows of a or the columns of b; depth runs along k.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/cpu/gemm/gemm.h"

namespace bev::cpu {

// Lanes x depth elements of an operand.
struct GemmPanels {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t lane_stride = 0, depth_stride = 0;  // one of them is 1
  int64_t lanes = 0, depth = 0;
};

// Memory that will be packed next, brought near while the current block is being multiplied.
struct GemmPrefetch {
  const char* row = nullptr;
  int64_t rows = 0, row_bytes = 0, stride = 0;  // bytes
};

// Packed panels of a times packed panels of b, into rows x columns of c.
struct GemmBlock {
  const float *a = nullptr, *b = nullptr;
  int64_t row = 0, column = 0;  // of c
  int64_t rows = 0, columns = 0, depth = 0;
  // Where sums over a part of k are kept; of the same place as (row, column). An f32 c is its own.
  float* partial = nullptr;
  int64_t partial_stride = 0;
  bool add = false;   // to what partial holds
  bool last = false;  // of the parts of k: the result goes to c
  GemmPrefetch next;
};

struct GemmKernels {
  int64_t tile_rows, tile_columns;  // lanes of a panel of a and of b
  int64_t depth;                    // the largest of a block
  // Panel after panel, each [depth][lanes of a panel]. Vectors without lanes are not written.
  void (*pack_a)(const GemmPanels& source, float* packed);
  void (*pack_b)(const GemmPanels& source, float* packed);
  // sums[lane] += the sum over depth of packed panels of a.
  void (*add_row_sums)(const float* packed, int64_t lanes, int64_t depth, float* sums);
  void (*multiply)(const Gemm& g, const GemmBlock& block);

  // For few_rows(): a as multiply_few reads it, and up to kFewColumns columns of c from `column`
  // on. The columns of b from `next` on are brought near; from g.n on there are none.
  void (*pack_few)(const Gemm& g, float* packed);
  void (*multiply_few)(const Gemm& g, const float* packed, int64_t column, int64_t columns,
                       int64_t next);
};
constexpr int64_t kFewColumns = 32;

extern const GemmKernels kGemmPortable, kGemmAvx2, kGemmAvx512;

const GemmKernels& gemm_kernels(Isa isa);

}  // namespace bev::cpu
