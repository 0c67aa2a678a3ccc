#include "config/resolve.h"

#include "unit/config/loading.h"

namespace bev {
namespace {

TEST(Resolve, VocabularyIsPaddedAsMegatronDoes) {
  EXPECT_EQ(padded_vocab(50257, 128, 1), 50304);
  EXPECT_EQ(padded_vocab(50257, 128, 8), 51200);
  EXPECT_EQ(padded_vocab(1, 128, 16), 2048);
  EXPECT_EQ(padded_vocab(127, 64, 2), 128);
  EXPECT_EQ(padded_vocab(128, 128, 1), 128);
  EXPECT_EQ(padded_vocab(32000, 1, 1), 32000);
}

TEST(Resolve, InnerSizeIsMegatrons) {
  EXPECT_EQ(default_ffn(1024, false), 4096);
  EXPECT_EQ(default_ffn(4096, true), 10880);
  EXPECT_EQ(default_ffn(5120, true), 13632);
  EXPECT_EQ(default_ffn(8192, true), 21824);
}

TEST(Resolve, ModelFillsInWhatIsDerived) {
  const ModelShape s = resolve_model(load(small_model()).config);
  EXPECT_EQ(s.kv_heads, 4);
  EXPECT_EQ(s.head_dim, 16);
  EXPECT_EQ(s.ffn, 256);
  EXPECT_EQ(s.padded_vocab, 1024);
  EXPECT_EQ(s.positions, 128);
  EXPECT_EQ(s.rotary_dim, 0);
  const ModelShape given =
      resolve_model(load(small_model() +
                         Args{"--group-query-attention", "--num-query-groups", "2", "--kv-channels",
                              "32", "--ffn-hidden-size", "100", "--max-position-embeddings", "200",
                              "--position-embedding-type", "rope", "--rotary-percent", "0.5"})
                        .config);
  EXPECT_EQ(given.kv_heads, 2);
  EXPECT_EQ(given.head_dim, 32);
  EXPECT_EQ(given.ffn, 100);
  EXPECT_EQ(given.positions, 200);
  EXPECT_EQ(given.rotary_dim, 16);
}

TEST(Resolve, BatchAndLength) {
  Config config = load(small_model()).config;
  EXPECT_EQ(resolve_batch(config).global_batch, 2);
  EXPECT_EQ(resolve_batch(config).micros, 1);
  EXPECT_EQ(resolve_batch(config).tokens_per_micro(), 256);
  config.train.global_batch = 8;
  EXPECT_EQ(resolve_batch(config).micros, 4);
  config.train.samples = 99;
  EXPECT_EQ(resolve_iterations(config), 12);
  config.train.samples = 0;
  config.train.iterations = 5;
  EXPECT_EQ(resolve_iterations(config), 5);
}

TEST(Resolve, PrecisionByDevice) {
  Config config;
  EXPECT_EQ(resolve_dtype(config), DType::f32);
  config.device.kind = DeviceKind::Reference;
  EXPECT_EQ(resolve_dtype(config), DType::f64);
  config.device.kind = DeviceKind::Cuda;
  EXPECT_EQ(resolve_dtype(config), DType::bf16);
  config.device.kind = DeviceKind::Cpu;
  config.device.precision = Precision::Bf16;
  EXPECT_EQ(resolve_dtype(config), DType::bf16);
}

}  // namespace
}  // namespace bev
