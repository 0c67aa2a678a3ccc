// The memory that ops of the cuda backend need besides their operands, as formulas of our own: the
// plan books what these say, the ops take exactly that from the scratch arena, and a library's
// candidate that wants more is refused. No CUDA header is needed here, so that planning works
// without.
#pragma once

#include <algorithm>
#include <bit>

#include "ops/attention.h"
#include "ops/cuda/attention/attention_dispatch.h"
#include "ops/cuda/attention/flash_attention.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "ops/sampling.h"

namespace bev::cuda {

// Of GEMMs (cuBLASLt); allocated once with the device.
constexpr size_t kGemmWorkspace = size_t{32} << 20;

inline size_t workspace_bytes(const ops::Attention& a, const DevicePolicy& policy) {
  return cudnn_may_serve(a, policy) ? cudnn_forward_budget(a) : 0;
}
inline size_t workspace_bytes(const ops::AttentionBackward& a, const DevicePolicy& policy) {
  const size_t ours = one_pass_may_serve(a, policy) ? query_gradient_at(a) + query_gradient_bytes(a)
                                                    : query_sums_bytes(a);
  return cudnn_may_serve(a, policy) ? std::max(ours, cudnn_backward_budget(a)) : ours;
}

// The gradients of a norm's weight and bias, and dx_sums, are sums over rows: the rows are dealt to
// blocks, one for each multiprocessor but no more than this, each of which keeps sums of its own;
// they are added in order at the end.
constexpr int64_t kMostNormParts = 192;
inline size_t workspace_bytes(const ops::NormBackward& n, const DevicePolicy&) {
  const int64_t width = n.x.shape[n.x.shape.rank() - 1];
  const int64_t rows = n.x.shape.elements() / width;
  const int64_t parts = rows < kMostNormParts ? rows : kMostNormParts;
  const int64_t sums = 1 + (n.dbias.present() ? 1 : 0) + (n.dx_sums.present() ? 1 : 0);
  return static_cast<size_t>(parts * sums * width) * sizeof(float);
}

// Tokens are sorted by table row, kSortTile of them in a block, by digits of kSortDigits values:
// rows and tokens twice, and a count for each digit and tile.
constexpr int64_t kSortTile = 1024, kSortDigits = 512;
constexpr size_t token_sort_bytes(int64_t tokens) {
  const int64_t tiles = (tokens + kSortTile - 1) / kSortTile;
  return static_cast<size_t>(4 * tokens + kSortDigits * tiles) * sizeof(int32_t);
}
// The sorted tokens are cut into stretches of this length, each with up to two sums of its own.
constexpr int64_t kEmbeddingPiece = 64;
inline size_t workspace_bytes(const ops::EmbeddingBackward& e, const DevicePolicy&) {
  const int64_t tokens = e.dout.shape[0], width = e.dout.shape[1];
  const int64_t pieces = 2 * ((tokens + kEmbeddingPiece - 1) / kEmbeddingPiece);
  return token_sort_bytes(tokens) + static_cast<size_t>(pieces * width) * sizeof(float);
}

// Sums over a whole tensor are made of this many parts at most, whatever the GPU.
constexpr int64_t kMostSumParts = 1024;
constexpr int64_t sum_parts(int64_t items, int64_t threads) {
  const int64_t parts = (items + threads - 1) / threads;
  return parts < kMostSumParts ? parts : kMostSumParts;
}
inline size_t workspace_bytes(const ops::SquaredNorm&, const DevicePolicy&) {
  return kMostSumParts * sizeof(double);
}
inline size_t workspace_bytes(const ops::WeightedSum&, const DevicePolicy&) {
  return 2 * kMostSumParts * sizeof(double);
}

// The cached keys of a sequence are dealt to several blocks where there are few sequences. Up to
// kMostDecodeCluster of them, a power of two, put together what they have found by themselves. More
// of them pay where there may be many keys: each then leaves a mean of values and how much it
// weighs for its query heads here, and another kernel puts that together.
constexpr int64_t kMostDecodeCluster = 8, kMostDecodeSplits = 64;
constexpr int64_t kLeastDecodeKeys = 32, kMostClusterKeys = 4096;
constexpr int64_t kFewDecodeBlocks = 264, kDecodeBlocks = 1024;
constexpr int64_t kMostDecodeDims = 1024;
inline int64_t decode_splits(const ops::DecodeAttention& d) {
  const int64_t cached = d.pages.shape[1] * d.page;
  const int64_t visible = d.window > 0 ? std::min(cached, d.window) : cached;
  const int64_t alone = std::max<int64_t>(1, d.q.shape[0] * d.k.shape[1]);
  const int64_t useful = (visible + kLeastDecodeKeys - 1) / kLeastDecodeKeys;
  const bool many_keys = visible > kMostClusterKeys;
  const int64_t wanted = std::min({(many_keys ? kDecodeBlocks : kFewDecodeBlocks) / alone, useful,
                                   many_keys ? kMostDecodeSplits : kMostDecodeCluster});
  if (wanted > kMostDecodeCluster) return wanted;
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, wanted))));
}
inline size_t workspace_bytes(const ops::DecodeAttention& d, const DevicePolicy&) {
  const int64_t splits = decode_splits(d);
  const int64_t parts = splits > kMostDecodeCluster ? d.q.shape[0] * d.q.shape[1] * splits : 0;
  return static_cast<size_t>(parts * (1 + d.q.shape[2])) * sizeof(float);
}

// A row of logits is looked at by several blocks, kChoicePart columns each, which find its
// likeliest id (8 bytes) and its largest logit and sum of exponentials (4 each).
constexpr int64_t kChoicePart = 4096;
inline int64_t choice_parts(const ops::SampleTokens& c) {
  return (c.classes + kChoicePart - 1) / kChoicePart;
}
inline size_t workspace_bytes(const ops::SampleTokens& c, const DevicePolicy&) {
  return static_cast<size_t>(c.logits.shape[0] * choice_parts(c)) * 16;
}

inline size_t workspace_bytes(const ops::Matmul&, const DevicePolicy&) { return 0; }
inline size_t workspace_bytes(const ops::DecodeGemm&, const DevicePolicy&) { return 0; }

// The workspace of one call, from the scratch arena; absent when none is needed. It lasts until the
// caller's ArenaScope ends: what comes later on the stream may then use the memory.
template <class Args>
Tensor workspace_of(Exec& ex, const Args& args, const char* name) {
  const size_t bytes = workspace_bytes(args, ex.device.policy());
  if (bytes == 0) return {};
  return ex.scratch.allocate({static_cast<int64_t>(bytes)}, DType::u8, name);
}

}  // namespace bev::cuda
