// To how many blocks the cached keys of a sequence are dealt. Every test names the fault that makes
// it fail.
#include <gtest/gtest.h>

#include "ops/cuda/workspace.h"

namespace bev::cuda {
namespace {

struct Decoding {
  int64_t sequences = 1, most_pages = 64, window = 0, kv_heads = 12;

  ops::DecodeAttention operator()() const {
    std::byte* const none = nullptr;
    ops::DecodeAttention d;
    d.q = tensor_over(none, DType::bf16, {sequences, 24, 64});
    d.k = tensor_over(none, DType::bf16, {sequences, kv_heads, 64});
    d.pages = tensor_over(none, DType::i32, {sequences, most_pages});
    d.page = 16;
    d.window = window;
    return d;
  }
  int64_t splits() const { return decode_splits((*this)()); }
  size_t bytes() const { return workspace_bytes((*this)(), {}); }
};

// Fails when a cluster is larger than every GPU has it, or is no power of two, or has blocks that
// never see a key.
TEST(DecodeSplits, FewSequencesShareClusters) {
  EXPECT_EQ(Decoding{}.splits(), 8);
  EXPECT_EQ(Decoding{.sequences = 4}.splits(), 4);  // 5 would fit
  EXPECT_EQ(Decoding{.sequences = 8}.splits(), 2);
  EXPECT_EQ(Decoding{.sequences = 12}.splits(), 1);
  EXPECT_EQ(Decoding{.sequences = 1000}.splits(), 1);
  EXPECT_EQ(Decoding{.most_pages = 8}.splits(), 4);
  EXPECT_EQ(Decoding{.most_pages = 2}.splits(), 1);
  EXPECT_EQ(Decoding{.most_pages = 0}.splits(), 1);
  EXPECT_EQ(Decoding{.window = 200}.splits(), 4);
  EXPECT_EQ((Decoding{.most_pages = 256, .kv_heads = 1}.splits()), 8);
}

// Fails when the books of the plan lack what the second kernel reads, or have what nobody needs.
TEST(DecodeSplits, OnlyManyKeysNeedWorkspace) {
  EXPECT_EQ(Decoding{}.bytes(), size_t{0});
  const Decoding many{.most_pages = 1024};
  EXPECT_EQ(many.splits(), 64);
  EXPECT_EQ(many.bytes(), size_t{24 * 64 * 65 * 4});
  const Decoding batch{.sequences = 20, .most_pages = 1024};
  EXPECT_EQ(batch.splits(), 4);
  EXPECT_EQ(batch.bytes(), size_t{0});
  EXPECT_EQ((Decoding{.most_pages = 1024, .window = 500}.bytes()), size_t{0});
}

}  // namespace
}  // namespace bev::cuda
