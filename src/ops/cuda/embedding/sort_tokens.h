// Tokens in the order of their table rows, and in their own order within a row.
#pragma once

#include <cstdint>

#include "device/exec.h"
#include "ops/cuda/workspace.h"

namespace bev::cuda {

struct SortedTokens {
  const int32_t* rows;    // [tokens] ascending; table_rows for ids that no row belongs to
  const int32_t* tokens;  // [tokens]
};

// Stable, hence the same in every run. `memory` has token_sort_bytes(tokens) bytes; the result lies
// in it.
SortedTokens sort_tokens(Exec& ex, const int32_t* ids, int64_t tokens, int64_t row_begin,
                         int64_t table_rows, std::byte* memory);

}  // namespace bev::cuda
