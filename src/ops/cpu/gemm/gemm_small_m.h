// Matrix products a b with so few rows of a that reading b is all that takes time: each weight is
// read once, from where it lies, and no panels are packed.
#pragma once

#include "ops/cpu/gemm/gemm.h"

namespace bev::cpu {

// The most rows of a.
constexpr int64_t kFewRows = 16;

// Whether few_rows() may serve it: rows of a and columns of b contiguous along k, and no row sums.
bool is_few_rows(const Gemm& g);

// What gemm() computes, but summed in an order of its own, which depends on k alone. No result
// depends on the number of threads or on other rows of a. REQUIRES: is_few_rows(g), and those of
// gemm().
void few_rows(ThreadPool& pool, std::byte* workspace, const Gemm& g, Isa isa = best_isa());

}  // namespace bev::cpu
