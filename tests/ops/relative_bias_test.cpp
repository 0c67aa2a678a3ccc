// The relative bias of T5. Every test names the fault that makes it fail.
#include "ops/relative_bias.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/harness.h"

namespace bev::test {
namespace {

// The rule as transformers states it, with the logarithm of long double, and each step rounded to
// f32 like a tensor of that type.
int64_t stated_bucket(int64_t relative, int64_t buckets, int64_t max_distance, bool bidirectional) {
  int64_t base = 0;
  if (bidirectional) {
    buckets /= 2;
    base = relative > 0 ? buckets : 0;
    relative = std::abs(relative);
  } else {
    relative = std::max<int64_t>(-relative, 0);
  }
  const int64_t exact = buckets / 2;
  if (relative < exact) return base + relative;
  const float ratio = static_cast<float>(relative) / static_cast<float>(exact);
  const auto above = static_cast<float>(std::log(static_cast<long double>(ratio)));
  const auto all = static_cast<float>(
      std::log(static_cast<long double>(max_distance) / static_cast<long double>(exact)));
  const float place = above / all * static_cast<float>(buckets - exact);
  return base + std::min(exact + static_cast<int64_t>(std::trunc(place)), buckets - 1);
}

// Fails when a bucket begins one key early or late, wherever its logarithm is close to a whole
// number, and when a range does not hold exactly the positions of its bucket.
TEST(RelativeBuckets, MatchTheStatedRule) {
  constexpr int64_t kFar = 3000;
  for (int64_t buckets = 8; buckets <= 64; ++buckets) {
    for (int64_t most = 20; most <= 512; most += buckets % 8 == 0 ? 1 : 59) {
      for (const bool bidirectional : {true, false}) {
        if (!ops::RelativeBuckets::are_valid(buckets, most, bidirectional)) continue;
        SCOPED_TRACE(label("{} buckets, {}, {}", buckets, most, bidirectional));
        const ops::RelativeBuckets rule(buckets, most, bidirectional);
        for (int64_t relative = -kFar; relative <= kFar; relative += most % 8 == 0 ? 1 : 7) {
          const int64_t found = rule.bucket(relative);
          ASSERT_EQ(found, stated_bucket(relative, buckets, most, bidirectional)) << relative;
          const auto range = rule.relative_positions(static_cast<int>(found));
          ASSERT_TRUE(range.first <= relative && relative < range.end) << relative;
        }
      }
    }
  }
}

// As powers of two: the logarithms of T5's own sizes, 32 and 128, meet whole numbers at 16, 32 and
// 64, where f32 gives exactly these. Fails when a rounding error moves a border.
TEST(RelativeBuckets, BordersOfT5) {
  const ops::RelativeBuckets encoder(32, 128, true), decoder(32, 128, false);
  for (const auto& [distance, bucket] : {std::pair<int64_t, int>{0, 0},
                                         {7, 7},
                                         {8, 8},
                                         {11, 8},
                                         {12, 9},
                                         {15, 9},
                                         {16, 10},
                                         {22, 10},
                                         {23, 11},
                                         {31, 11},
                                         {32, 12},
                                         {63, 13},
                                         {64, 14},
                                         {90, 14},
                                         {91, 15},
                                         {127, 15},
                                         {128, 15},
                                         {5000, 15}}) {
    EXPECT_EQ(encoder.bucket(-distance), bucket) << distance;
    if (distance > 0) {
      EXPECT_EQ(encoder.bucket(distance), 16 + bucket) << distance;
    }
  }
  EXPECT_EQ(decoder.bucket(3), 0);
  EXPECT_EQ(decoder.bucket(-15), 15);
  EXPECT_EQ(decoder.bucket(-16), 16);
  EXPECT_EQ(decoder.bucket(-128), 31);
}

// Fails when a range of a bucket meets another's or leaves a position out.
TEST(RelativeBuckets, RangesCoverAllPositionsOnce) {
  for (const int64_t buckets : {4, 5, 8, 31, 32, 64, 256}) {
    for (const bool bidirectional : {true, false}) {
      const int64_t most = 40 + buckets;
      const ops::RelativeBuckets rule(buckets, most, bidirectional);
      for (int64_t relative = -400; relative <= 400; ++relative) {
        int holding = 0;
        for (int bucket = 0; bucket < buckets; ++bucket) {
          const auto range = rule.relative_positions(bucket);
          holding += range.first <= relative && relative < range.end ? 1 : 0;
        }
        ASSERT_EQ(holding, 1) << relative << " of " << buckets;
      }
    }
  }
}

struct BiasCase {
  int64_t heads = 1, queries = 1, keys = 1, buckets = 32;
  ops::RelativePositions positions{};

  Shape bias_shape() const { return {heads, queries, keys}; }
  Shape table_shape() const { return {buckets, heads}; }
  std::string name() const {
    return label("heads={} queries={} keys={} buckets={} most={} bidirectional={} offset={}", heads,
                 queries, keys, buckets, positions.max_distance, positions.bidirectional,
                 positions.query_offset);
  }
};

struct BiasForward : BiasCase {
  void operator()(Trial& run) const {
    const ConstTensor table = run.input("table", table_shape());
    ops::relative_bias(
        run.ex(),
        {.table = table, .positions = positions, .bias = run.output("bias", bias_shape())});
  }
};

struct BiasBackward : BiasCase {
  void operator()(Trial& run) const {
    const Tensor dtable = run.updated("dtable", table_shape(), Element::Sum);
    run.compare("dtable", dtable, {.reduction = queries * keys, .magnitude = 1});
    ops::relative_bias_backward(run.ex(), {.dbias = run.input("dbias", bias_shape(), Element::Sum),
                                           .positions = positions,
                                           .dtable = dtable});
  }
};

std::vector<BiasCase> bias_cases() {
  return {
      {},
      {.heads = 2, .queries = 0, .keys = 5},
      {.heads = 3, .queries = 7, .keys = 0},
      {.heads = 4, .queries = 9, .keys = 13, .buckets = 8, .positions = {.max_distance = 20}},
      {.heads = 3, .queries = 65, .keys = 65, .buckets = 9, .positions = {.max_distance = 33}},
      {.heads = 2, .queries = 150, .keys = 300},
      {.heads = 5, .queries = 200, .keys = 140, .positions = {.bidirectional = false}},
      // A table for decoding, and queries that stand elsewhere among the keys.
      {.heads = 6,
       .queries = 1,
       .keys = 517,
       .positions = {.bidirectional = false, .query_offset = 516}},
      {.heads = 2, .queries = 33, .keys = 70, .positions = {.query_offset = -20}},
      {.heads = 2, .queries = 3, .keys = 40, .positions = {.query_offset = 5000}},
  };
}

// Fails when heads and buckets of the table are exchanged, or the offset has the wrong sign.
TEST(RelativeBias, CpuForwardAgrees) {
  for (const BiasCase& c : bias_cases()) expect_cpu_agrees(c.name(), BiasForward{c});
}
TEST(RelativeBias, CudaForwardAgrees) {
  for (const BiasCase& c : bias_cases()) expect_cuda_agrees(c.name(), BiasForward{c});
}

// Fails when a bucket of no pair is not left as it was, or the gradient replaces what was there.
TEST(RelativeBias, CpuBackwardAgrees) {
  for (const BiasCase& c : bias_cases()) expect_cpu_agrees(c.name(), BiasBackward{c});
}
TEST(RelativeBias, CudaBackwardAgrees) {
  for (const BiasCase& c : bias_cases()) expect_cuda_agrees(c.name(), BiasBackward{c});
}

// The bias is linear in the table. Fails when the gradient is not the transpose of the look-up.
TEST(RelativeBias, GradientMatchesDifferences) {
  Trial run(gradient_run());
  const ops::RelativePositions positions{.max_distance = 20, .query_offset = 2};
  const Tensor table = writable(run.input("table", {8, 3})), dtable = run.blank({8, 3});
  const Tensor bias = run.blank({3, 5, 30});
  const ConstTensor dbias = run.input("dbias", {3, 5, 30});
  ops::fill(run.ex(), {.out = dtable, .value = 0});
  ops::relative_bias_backward(run.ex(), {.dbias = dbias, .positions = positions, .dtable = dtable});
  expect_gradient("table", table, dtable, [&] {
    ops::relative_bias(run.ex(), {.table = table, .positions = positions, .bias = bias});
    return inner(dbias, bias);
  });
}

}  // namespace
}  // namespace bev::test
