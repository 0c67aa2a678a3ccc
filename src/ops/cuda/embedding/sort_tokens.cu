// A radix sort, least significant digit first. Each pass counts the digits of every tile of tokens,
// turns the counts (digit by digit, within a digit tile by tile) into places, and moves the tokens
// of a tile to them in order. Integer additions only: no order of execution shows in the result.
#include <bit>
#include <utility>

#include "ops/cuda/embedding/sort_tokens.h"
#include "ops/cuda/primitives/element_types.cuh"

namespace bev::cuda {

namespace {

constexpr int kTile = static_cast<int>(kSortTile);  // a thread for each token
constexpr int kDigits = static_cast<int>(kSortDigits);
constexpr int kWarps = kTile / 32;
constexpr int kDigitBits = 9;
static_assert(kDigits == 1 << kDigitBits && kTile == 1024);

struct Pass {
  const int32_t *rows, *tokens;  // what the pass before has left; the first reads ids
  const int32_t* ids;            // null after the first pass
  int64_t count, row_begin, table_rows;
  int shift;

  __device__ __forceinline__ int32_t row_at(int64_t i) const {
    if (ids == nullptr) return rows[i];
    const int64_t row = ids[i] - row_begin;
    return static_cast<int32_t>(row >= 0 && row < table_rows ? row : table_rows);
  }
  __device__ __forceinline__ int digit_of(int32_t row) const {
    return row >> shift & (kDigits - 1);
  }
};

// places[digit, tile] = how often the digit occurs in the tile.
__global__ void __launch_bounds__(kTile) count_digits(Pass pass, int32_t* places) {
  __shared__ int32_t counts[kDigits];
  if (threadIdx.x < kDigits) counts[threadIdx.x] = 0;
  __syncthreads();
  const int64_t i = int64_t{blockIdx.x} * kTile + threadIdx.x;
  if (i < pass.count) atomicAdd(&counts[pass.digit_of(pass.row_at(i))], 1);
  __syncthreads();
  if (threadIdx.x < kDigits) {
    places[int64_t{threadIdx.x} * gridDim.x + blockIdx.x] = counts[threadIdx.x];
  }
}

// Inclusive sum over the lanes of a warp.
__device__ __forceinline__ int32_t scan_warp(int32_t value) {
  for (int offset = 1; offset < 32; offset *= 2) {
    const int32_t below = __shfl_up_sync(kAllLanes, value, offset);
    if (static_cast<int>(threadIdx.x) % 32 >= offset) value += below;
  }
  return value;
}

// Every count becomes the sum of those before it. One block; `count` is a multiple of kItems.
__global__ void __launch_bounds__(kTile) scan_counts(int32_t* places, int64_t count) {
  constexpr int kItems = 16;  // of a thread at a time
  static_assert(kDigits % kItems == 0 && kWarps == 32);
  __shared__ int32_t of_warps[kWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int32_t before = 0;
  for (int64_t begin = 0; begin < count; begin += kTile * kItems) {
    const int64_t first = begin + int64_t{threadIdx.x} * kItems;
    int4 items[kItems / 4] = {};
    int32_t own = 0;
    if (first < count) {
#pragma unroll
      for (int i = 0; i < kItems / 4; ++i) {
        items[i] = reinterpret_cast<const int4*>(places + first)[i];
      }
#pragma unroll
      for (int i = 0; i < kItems / 4; ++i) own += items[i].x + items[i].y + items[i].z + items[i].w;
    }
    const int32_t up_to = scan_warp(own);
    if (lane == 31) of_warps[warp] = up_to;
    __syncthreads();
    const int32_t warps = scan_warp(of_warps[lane]);
    const int32_t below = __shfl_sync(kAllLanes, warps, warp == 0 ? 0 : warp - 1);
    int32_t place = before + (warp == 0 ? 0 : below) + up_to - own;
    before += __shfl_sync(kAllLanes, warps, 31);
    if (first < count) {
#pragma unroll
      for (int i = 0; i < kItems / 4; ++i) {
        int4 out;
        out.x = place;
        out.y = out.x + items[i].x;
        out.z = out.y + items[i].y;
        out.w = out.z + items[i].z;
        place = out.w + items[i].w;
        reinterpret_cast<int4*>(places + first)[i] = out;
      }
    }
    __syncthreads();
  }
}

// The place of a token: those of smaller digits, those of its digit in earlier tiles (both in
// `places`), in earlier warps of its tile, and in earlier lanes of its warp.
__global__ void __launch_bounds__(kTile)
    move_tokens(Pass pass, const int32_t* places, int32_t* rows_out, int32_t* tokens_out) {
  __shared__ uint16_t of_warps[kWarps][kDigits];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int w = 0; w < kWarps; ++w) {
    if (threadIdx.x < kDigits) of_warps[w][threadIdx.x] = 0;
  }
  __syncthreads();
  const int64_t i = int64_t{blockIdx.x} * kTile + threadIdx.x;
  const bool live = i < pass.count;
  const int32_t row = live ? pass.row_at(i) : 0;
  const int digit = live ? pass.digit_of(row) : kDigits;  // kDigits: no digit at all
  const unsigned same = __match_any_sync(kAllLanes, digit);
  const int rank = __popc(same & ((1u << lane) - 1));
  if (live && rank == 0) of_warps[warp][digit] = static_cast<uint16_t>(__popc(same));
  __syncthreads();
  if (threadIdx.x < kDigits) {
    int before = 0;
    for (int w = 0; w < kWarps; ++w) {
      const int count = of_warps[w][threadIdx.x];
      of_warps[w][threadIdx.x] = static_cast<uint16_t>(before);
      before += count;
    }
  }
  __syncthreads();
  if (!live) return;
  const int64_t place =
      places[int64_t{digit} * gridDim.x + blockIdx.x] + of_warps[warp][digit] + rank;
  rows_out[place] = row;
  tokens_out[place] = pass.ids != nullptr ? static_cast<int32_t>(i) : pass.tokens[i];
}

}  // namespace

SortedTokens sort_tokens(Exec& ex, const int32_t* ids, int64_t tokens, int64_t row_begin,
                         int64_t table_rows, std::byte* memory) {
  auto* from = reinterpret_cast<int32_t*>(memory);
  auto* to = from + 2 * tokens;
  auto* places = to + 2 * tokens;
  const auto tiles = static_cast<unsigned>(ceil_div(tokens, kTile));
  const int bits = std::bit_width(static_cast<uint64_t>(table_rows));
  for (int shift = 0; shift == 0 || shift < bits; shift += kDigitBits) {
    const Pass pass{.rows = from,
                    .tokens = from + tokens,
                    .ids = shift == 0 ? ids : nullptr,
                    .count = tokens,
                    .row_begin = row_begin,
                    .table_rows = table_rows,
                    .shift = shift};
    count_digits<<<tiles, kTile, 0, stream_of(ex)>>>(pass, places);
    check_launch("sorting tokens");
    scan_counts<<<1, kTile, 0, stream_of(ex)>>>(places, int64_t{kDigits} * tiles);
    check_launch("sorting tokens");
    move_tokens<<<tiles, kTile, 0, stream_of(ex)>>>(pass, places, to, to + tokens);
    check_launch("sorting tokens");
    std::swap(from, to);
  }
  return {from, from + tokens};
}

}  // namespace bev::cuda
