// Vectors of floats for the CPU kernels. A kernel is a template over V and is compiled once per
// instruction set; here `isa` names the widest set the compiler was allowed to use:
//   avx512::Vec (16 floats), avx2::Vec (8 floats), portable::Vec (4 floats, any CPU).
//
// A source file built with -mavx2 or -mavx512f must not define any function that a baseline file
// could define too, or the linker may keep the wrong copy: no std:: containers and algorithms, no
// inline functions outside the namespace of the set, only templates over V or one of its types.
// All such files are built with -ffp-contract=off, so that a result does not depend on where a
// function was inlined.
//
// Every Vec has
//   kWidth, Mask
//   zero(), broadcast(float)
//   load(p), load(p, count)        p: const float* or const bf16*; lanes from `count` on are 0
//   store(p), store(p, count)      p: float* or bf16*, rounded to nearest even
//   as_bf16()                      what store(bf16*) followed by load gives
//   + - * /, fma(a, b, c) = a b + c, min, max (b where one is a NaN), abs, sqrt, round_even
//   a < b, select(mask, a, b), sign_of(a, b): a >= 0 with the sign of b
//   scale(a, n): a 2^n for integral n in [-150, 129]
//   sum(a), max_lane(a)            across the lanes, in a fixed order
//   load_quads, transpose_quads    see the transposition in gemm_kernel.h
#pragma once

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include "ops/cpu/simd/simd_avx512.h"
namespace bev::cpu {
namespace isa = avx512;
}
#elif defined(__AVX2__) && defined(__FMA__)
#include "ops/cpu/simd/simd_avx2.h"
namespace bev::cpu {
namespace isa = avx2;
}
#else
#include "ops/cpu/simd/simd_portable.h"
namespace bev::cpu {
namespace isa = portable;
}
#endif

#include "ops/cpu/simd/simd_math.h"
