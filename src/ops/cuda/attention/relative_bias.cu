#include "ops/cuda/primitives/launch_kernel.cuh"
#include "ops/cuda/primitives/vector_rows.cuh"
#include "ops/op_table.h"
#include "ops/relative_bias.h"

namespace bev::cuda {

namespace {

constexpr int kPairThreads = 256, kSumThreads = 512;

// A thread writes the bias of one pair of a query and a key, for all heads.
template <class T>
__global__ void __launch_bounds__(kPairThreads)
    write_bias(const __grid_constant__ ops::RelativeBuckets rule, Rows<const T> table, Rows<T> bias,
               int64_t heads, int64_t queries, int64_t keys, int64_t offset) {
  const int64_t step = int64_t{gridDim.x} * kPairThreads;
  for (int64_t pair = int64_t{blockIdx.x} * kPairThreads + threadIdx.x; pair < queries * keys;
       pair += step) {
    const int64_t query = pair / keys, key = pair - query * keys;
    const T* of_heads = table[rule.bucket(key - (query + offset))];
    for (int64_t head = 0; head < heads; ++head) bias[head * queries + query][key] = of_heads[head];
  }
}

// A block adds what one head has of one bucket: a run of keys of every query.
__global__ void __launch_bounds__(kSumThreads)
    add_bucket_sums(const __grid_constant__ ops::RelativeBuckets rule, Rows<const float> dbias,
                    Rows<float> dtable, int64_t queries, int64_t keys, int64_t offset) {
  constexpr int kWarps = kSumThreads / 32;
  __shared__ float sums[kWarps];
  const int bucket = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y);
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const ops::RelativeBuckets::Range range = rule.relative_positions(bucket);
  float sum = 0;
  for (int64_t query = warp; query < queries; query += kWarps) {
    const float* row = dbias[head * queries + query];
    const int64_t position = query + offset;
    const int64_t begin = max(int64_t{0}, position + range.first);
    const int64_t end = min(keys, position + range.end);
    for (int64_t key = begin + lane; key < end; key += 32) sum += row[key];
  }
  sum = warp_sum(sum);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (warp > 0) return;
  sum = warp_sum(lane < kWarps ? sums[lane] : 0.0f);
  if (lane == 0) dtable[bucket][head] += sum;
}

}  // namespace

void relative_bias(Exec& ex, const ops::RelativeBias& r) {
  const int64_t queries = r.bias.shape[1], keys = r.bias.shape[2];
  if (r.bias.shape.elements() == 0) return;
  const ops::RelativeBuckets rule(r.table.shape[0], r.positions.max_distance,
                                  r.positions.bidirectional);
  const unsigned blocks = blocks_for(ex, queries * keys, kPairThreads);
  visit_cuda(r.table.dtype, "relative_bias", [&]<class T>() {
    write_bias<<<blocks, kPairThreads, 0, stream_of(ex)>>>(rule, Rows<const T>(r.table),
                                                           Rows<T>(r.bias), r.table.shape[1],
                                                           queries, keys, r.positions.query_offset);
    check_launch("relative_bias");
  });
}

void relative_bias_backward(Exec& ex, const ops::RelativeBiasBackward& r) {
  if (r.dbias.shape.elements() == 0 || r.dtable.shape.elements() == 0) return;
  if (r.dbias.dtype != DType::f32) refuse_dtype("relative_bias_backward", r.dbias.dtype);
  const ops::RelativeBuckets rule(r.dtable.shape[0], r.positions.max_distance,
                                  r.positions.bidirectional);
  const dim3 blocks(static_cast<unsigned>(r.dtable.shape[0]),
                    static_cast<unsigned>(r.dtable.shape[1]));
  add_bucket_sums<<<blocks, kSumThreads, 0, stream_of(ex)>>>(
      rule, Rows<const float>(r.dbias), Rows<float>(r.dtable), r.dbias.shape[1], r.dbias.shape[2],
      r.positions.query_offset);
  check_launch("relative_bias_backward");
}

}  // namespace bev::cuda
