// What the plan may ask about attention on the GPU without one. Every test names the fault that
// makes it fail.
#include "ops/cuda/attention/attention_dispatch.h"

#include <gtest/gtest.h>

#include "ops/cuda/workspace.h"

namespace bev::cuda {
namespace {

constexpr DevicePolicy kFast{}, kDeterministic{.deterministic = true};

// 2 sequences of 32 tokens; 8 heads of 64, 2 kv heads, fused into rows.
struct Fused {
  int64_t tokens = 64, heads = 8, kv_heads = 2, head_dim = 64;
  DType dtype = DType::bf16;

  ops::AttentionBackward operator()() const {
    const int64_t q = heads * head_dim, kv = kv_heads * head_dim;
    std::byte* const none = nullptr;
    const Tensor rows = tensor_over(none, dtype, {tokens, q + 2 * kv});
    const auto view = [&](int64_t begin, int64_t width) {
      return split_last(slice(rows, 1, begin, width), head_dim);
    };
    const Tensor out = tensor_over(none, dtype, {tokens, heads, head_dim});
    return {{.q = view(0, q), .k = view(q, kv), .v = view(q + kv, kv), .sequences = 2},
            out,
            out,
            tensor_over(none, DType::f32, {2, heads, tokens / 2}),
            view(0, q),
            view(q, kv),
            view(q + kv, kv)};
  }
};

// Fails when an argument that changes the result is not looked at.
TEST(AttentionDispatch, CudnnServesTheUsualAndNothingElse) {
  const auto served = [](const ops::AttentionBackward& a, const DevicePolicy& policy = kFast) {
    return cudnn_may_serve(a, policy);
  };
  EXPECT_TRUE(served(Fused{}()));
  EXPECT_FALSE(served(Fused{}(), kDeterministic));
  EXPECT_FALSE(served(Fused{.dtype = DType::f32}()));
  EXPECT_FALSE(served(Fused{.tokens = 0}()));
  EXPECT_TRUE(served(Fused{.head_dim = 128}()));
  EXPECT_FALSE(served(Fused{.head_dim = 136}()));
  EXPECT_FALSE(served(Fused{.head_dim = 20}()));

  const auto with = [&](auto change) {
    ops::AttentionBackward a = Fused{}();
    change(a);
    return served(a);
  };
  EXPECT_TRUE(with([](auto& a) { a.mask.window = 5; }));
  EXPECT_TRUE(with([](auto& a) { a.mask.causal = false; }));
  EXPECT_FALSE(with([](auto& a) { a.mask.causal = false, a.mask.window = 5; }));
  EXPECT_FALSE(with([](auto& a) { a.mask.query_offset = 1; }));
  EXPECT_FALSE(with([](auto& a) { a.dropout.probability = 0.1; }));
  EXPECT_FALSE(with([](auto& a) { a.mask.document_start = {.shape = {64}}; }));
  EXPECT_FALSE(with([](auto& a) { a.mask.key_lengths = {.shape = {64}}; }));
  EXPECT_FALSE(with([](auto& a) { a.k.shape.set(0, 32), a.v.shape.set(0, 32); }));
  EXPECT_FALSE(with([](auto& a) { a.dk.stride[0] += 4; }));
}

// Fails when the books of the plan are smaller than what our own kernels use, which serve when the
// library refuses at run time.
TEST(AttentionDispatch, WorkspaceIsEnoughForBoth) {
  const ops::AttentionBackward grouped = Fused{}();
  EXPECT_EQ(workspace_bytes(grouped, kDeterministic), size_t{64 * 8 * 8});
  const size_t megabyte = size_t{1} << 20;
  const size_t dq = 64 * 8 * 64 * 4, sums = 64 * 8 * 4, dk_and_dv = 2 * 64 * 8 * 64 * 2;
  EXPECT_EQ(workspace_bytes(grouped, kFast), dq + sums + dk_and_dv + megabyte);
  EXPECT_EQ(workspace_bytes(Fused{.kv_heads = 8}(), kFast), dq + sums + megabyte);
  EXPECT_GE(workspace_bytes(Fused{.head_dim = 8}(), kFast), query_sums_bytes(grouped));
  EXPECT_EQ(workspace_bytes(Fused{.tokens = 0}(), kFast), size_t{0});
}

// Fails when the sums of dq are booked where none are made, are not booked where they are, or are
// booked without the columns and bytes that fill up a chunk and an alignment.
TEST(AttentionDispatch, OnePassHasItsSums) {
  const auto bytes = [](const Fused& fused, const DevicePolicy& policy = kFast) {
    ops::AttentionBackward a = fused();
    a.dropout.probability = 0.1;  // cuDNN may not serve
    return workspace_bytes(a, policy);
  };
  const size_t rows = 64 * 8;
  EXPECT_EQ(bytes({}), rows * 8 + rows * 64 * 4);
  EXPECT_EQ(bytes({}, kDeterministic), rows * 8);
  EXPECT_EQ(bytes({.head_dim = 20}), rows * 8 + rows * 32 * 4);
  EXPECT_EQ(bytes({.head_dim = 264}), rows * 8);
  EXPECT_EQ(bytes({.dtype = DType::f32}), rows * 8);
  EXPECT_EQ(bytes({.tokens = 63, .heads = 1, .kv_heads = 1}), size_t{64 * 8 + 63 * 64 * 4});
}

}  // namespace
}  // namespace bev::cuda
