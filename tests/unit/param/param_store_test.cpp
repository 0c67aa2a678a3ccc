#include "param/param_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/format.h"
#include "ops/make_device.h"

namespace bev {
namespace {

ParamSpec fused_qkv() {
  return {.name = "layers.3.attention.qkv.weight",
          .shape = {24, 5},
          .parts = {{"q", 16, 4}, {"k", 4, 4}, {"v", 4, 4}},
          .cut = Cut{.dim = 0, .axis = Axis::Tensor}};
}

// Each rank holds the same heads of q, k and v; with one kv head both ranks hold it.
TEST(Pieces, FusedPartsAreCutOneByOne) {
  const RankGrid grid = ParallelLayout{.tensor = 2}.grid();
  const std::vector<Piece> second = pieces(fused_qkv(), grid, 1);
  ASSERT_EQ(second.size(), 3u);
  EXPECT_EQ(second[0].logical_begin, 8);
  EXPECT_EQ(second[0].extent, 8);
  EXPECT_EQ(second[1].logical_begin, 16);
  EXPECT_EQ(second[1].local_begin, 8);
  EXPECT_EQ(second[2].logical_begin, 20);
  EXPECT_EQ(local_shape(fused_qkv(), grid, 1), (Shape{16, 5}));
}

TEST(Pieces, UnitsThatDoNotDivideAreRefusedByName) {
  const RankGrid grid = ParallelLayout{.tensor = 3}.grid();
  try {
    pieces(fused_qkv(), grid, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::Usage);
    EXPECT_NE(std::string(error.what()).find("layers.3.attention.qkv.weight"), std::string::npos);
  }
}

// Fault that fails it: drawing by local instead of logical index.
TEST(Initialize, IsTheSameModelOnEveryLayout) {
  const auto device = make_device(DeviceKind::Reference, 1);
  ParamStore whole(*device, {}, 0, DType::f64);
  Param& all = whole.declare(fused_qkv());
  whole.allocate();
  whole.initialize(42);
  for (int rank = 0; rank < 2; ++rank) {
    const ParallelLayout layout{.tensor = 2};
    ParamStore part(*device, layout, rank, DType::f64);
    Param& mine = part.declare(fused_qkv());
    part.allocate();
    part.initialize(42);
    const auto* local = reinterpret_cast<const double*>(mine.value.data);
    const auto* logical = reinterpret_cast<const double*>(all.value.data);
    for (const Piece& piece : pieces(fused_qkv(), layout.grid(), rank)) {
      for (int64_t i = 0; i < piece.extent * 5; ++i) {
        EXPECT_EQ(local[piece.local_begin * 5 + i], logical[piece.logical_begin * 5 + i]);
      }
    }
  }
}

TEST(Initialize, HasTheDeclaredSpread) {
  const auto device = make_device(DeviceKind::Cpu, 2);
  ParamStore store(*device, {}, 0, DType::f32);
  Param& p = store.declare({.name = "w", .shape = {1000, 1000}, .init = {Init::Kind::Normal, 0.5}});
  Param& one = store.declare({.name = "one", .shape = {7}, .init = {Init::Kind::Ones}});
  store.allocate();
  store.initialize(1);
  const auto* v = reinterpret_cast<const float*>(p.value.data);
  double sum = 0, squares = 0, fourth = 0;
  for (int64_t i = 0; i < 1000000; ++i) {
    const double x = static_cast<double>(v[i]) / 0.5;
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / 1e6, 0, 4e-3);
  EXPECT_NEAR(squares / 1e6, 1, 6e-3);
  EXPECT_NEAR(fourth / 1e6, 3, 0.05);  // of a normal distribution
  EXPECT_EQ(reinterpret_cast<const float*>(one.value.data)[6], 1.0f);
}

TEST(Store, TiedParametersShareMemoryAndCountOnce) {
  const auto device = make_device(DeviceKind::Reference, 1);
  ParamStore store(*device, {}, 0, DType::f64);
  Param& table = store.declare({.name = "table", .shape = {6, 4}});
  Param& head = store.declare({.name = "head", .shape = {6, 4}, .tied_to = "table"});
  store.allocate();
  EXPECT_EQ(head.value.data, table.value.data);
  EXPECT_EQ(store.elements(), 24);
}

TEST(Store, MatricesComeBeforeVectorsInFlatBuffers) {
  const auto device = make_device(DeviceKind::Reference, 1);
  ParamStore store(*device, {}, 0, DType::f64);
  Param& norm = store.declare({.name = "norm", .shape = {3}});
  Param& first = store.declare({.name = "first", .shape = {5, 13}});
  Param& bias = store.declare({.name = "bias", .shape = {64}});
  Param& second = store.declare({.name = "second", .shape = {2, 2}});
  store.allocate();
  const std::vector<FlatParam> expected{
      {&first, 0, 128}, {&second, 128, 64}, {&norm, 192, 64}, {&bias, 256, 64}};
  ASSERT_EQ(store.flat().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const FlatParam& place = store.flat()[i];
    EXPECT_EQ(place.param, expected[i].param);
    EXPECT_EQ(place.begin, expected[i].begin);
    EXPECT_EQ(place.count, expected[i].count);
    EXPECT_EQ(place.param->value.data, store.value_range(place.begin, 1).data);
  }
  EXPECT_EQ(store.flat_elements(), 320);
  EXPECT_EQ(store.unique_params()[0], &norm);
}

// Fails when a bucket is gathered over the one before, or where there is only one memory.
TEST(Store, BucketsPassThroughTwoMemoriesInTurn) {
  const auto device = make_device(DeviceKind::Reference, 1);
  for (const bool overlaps : {false, true}) {
    const ParallelLayout layout{.data = 2, .zero = 3, .overlaps_param_gather = overlaps};
    ParamStore store(*device, layout, 0, DType::f64);
    std::vector<const Param*> params;
    for (const int64_t rows : {2, 6, 4}) {
      store.begin_bucket();
      params.push_back(&store.declare({.name = format("rows{}", rows), .shape = {rows, 64}}));
    }
    store.allocate();
    EXPECT_EQ(params[0]->value.data, params[2]->value.data);
    EXPECT_EQ(params[0]->value.data == params[1]->value.data, !overlaps);
    const ParamStore::StagingLayout passing = store.plan_staging(overlaps, [&](size_t section) {
      return static_cast<size_t>(store.sections()[section].count);
    });
    EXPECT_EQ(passing.begins, (std::vector<size_t>{0, 0, 0}));
    const size_t largest = *std::ranges::max_element(passing.bytes);
    const size_t smallest = *std::ranges::min_element(passing.bytes);
    EXPECT_EQ(largest, 6U * 64);
    EXPECT_EQ(smallest, overlaps ? 4U * 64 : 0U);
  }
}

TEST(Store, KindReplacesLayerNumbers) {
  EXPECT_EQ(param_kind("layers.12.norm1.weight"), "layers.*.norm1.weight");
  EXPECT_EQ(param_kind("final_norm.weight"), "final_norm.weight");
}

TEST(Grid, PeersPartitionTheWorld) {
  const RankGrid grid = ParallelLayout{.tensor = 2, .context = 3, .data = 2, .pipeline = 2}.grid();
  ASSERT_EQ(grid.world(), 24);
  for (const AxisSet& over : {AxisSet{Axis::Tensor}, AxisSet{Axis::Data, Axis::Context},
                              AxisSet{Axis::Pipeline}, AxisSet{}}) {
    std::vector<int> seen(24, 0);
    for (int rank = 0; rank < 24; ++rank) {
      const std::vector<int> peers = grid.peers(rank, over);
      EXPECT_TRUE(std::find(peers.begin(), peers.end(), rank) != peers.end());
      for (const int peer : peers) {
        EXPECT_EQ(grid.peers(peer, over), peers);
        if (rank == peers.front()) ++seen[static_cast<size_t>(peer)];
      }
    }
    for (const int count : seen) EXPECT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace bev
