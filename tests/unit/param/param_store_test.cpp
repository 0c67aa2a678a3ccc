#include "param/param_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/format.h"
#include "comm/planning_communicator.h"
#include "ops/make_device.h"
#include "parallel/process_groups.h"
#include "support/expect_error.h"

namespace bev {
namespace {

ParamSpec fused_qkv() {
  return {.name = "layers.3.attention.qkv.weight",
          .shape = {24, 5},
          .place = {.cut = Cut{.dim = 0, .axis = Axis::Tensor},
                    .parts = {{"q", 16, 4}, {"k", 4, 4}, {"v", 4, 4}}}};
}

// Each rank holds the same heads of q, k and v; with one kv head both ranks hold it.
TEST(Pieces, FusedPartsAreCutOneByOne) {
  const ParallelLayout layout{.tensor = 2};
  const std::vector<Piece> second = local_pieces(fused_qkv(), layout, 1);
  ASSERT_EQ(second.size(), 3u);
  EXPECT_EQ(second[0].logical, (Rectangle{.row = 8, .rows = 8, .columns = 5}));
  EXPECT_EQ(second[1].logical, (Rectangle{.row = 16, .rows = 4, .columns = 5}));
  EXPECT_EQ(second[1].local_row, 8);
  EXPECT_EQ(second[1].replicas, 2);
  EXPECT_FALSE(second[1].is_first);
  EXPECT_EQ(second[2].logical.row, 20);
  EXPECT_EQ(local_shape(fused_qkv(), layout, 1), (Shape{16, 5}));
  EXPECT_EQ(owned_pieces(fused_qkv(), layout, 0).size(), 3u);
  EXPECT_EQ(owned_pieces(fused_qkv(), layout, 1).size(), 1u);
}

// Fails when columns are cut as rows.
TEST(Pieces, ColumnsAreCut) {
  const ParamSpec out{
      .name = "out", .shape = {5, 24}, .place = {.cut = Cut{.dim = 1, .axis = Axis::Tensor}}};
  const ParallelLayout layout{.tensor = 3};
  const std::vector<Piece> pieces = local_pieces(out, layout, 2);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].logical, (Rectangle{.column = 16, .rows = 5, .columns = 8}));
  std::vector<std::vector<int64_t>> runs;
  visit_runs(pieces, local_shape(out, layout, 2), out.shape,
             [&](int64_t local, int64_t logical, int64_t count) {
               runs.push_back({local, logical, count});
             });
  ASSERT_EQ(runs.size(), 5u);
  EXPECT_EQ(runs[1], (std::vector<int64_t>{8, 24 + 16, 8}));
}

// Every element has one owner in each shard group. Fails when a copy is owned twice or not at all.
TEST(Pieces, EachElementHasOneOwner) {
  const ParallelLayout layout{
      .tensor = 4, .context = 2, .data = 2, .pipeline = 3, .expert = 4, .expert_tensor = 2};
  const std::vector<ParamSpec> specs{
      fused_qkv(),
      {.name = "norm", .shape = {12}},
      {.name = "table",
       .shape = {8, 3},
       .place = {.cut = Cut{.dim = 0, .axis = Axis::Tensor}, .stages = {1, 2}}},
      {.name = "expert",
       .shape = {6, 8},
       .place = {.grid = GridKind::Experts, .cut = Cut{.dim = 1, .axis = Axis::Tensor}}}};
  for (const ParamSpec& spec : specs) {
    const RankGrid grid = layout.grid(spec.place.grid);
    std::map<std::vector<int>, int64_t> owned;  // elements, by the coordinates of the shard group
    for (int rank = 0; rank < layout.world(); ++rank) {
      const int stage = grid.coordinate(rank, Axis::Pipeline);
      const bool holds = spec.place.is_shared() ? stage > 0 : stage == 1;
      if (!holds) continue;
      std::vector<int> shard;
      for (const Axis axis : {Axis::Context, Axis::Expert, Axis::Data})
        shard.push_back(grid.coordinate(rank, axis));
      int64_t& elements = owned[shard];
      for (const Piece& piece : owned_pieces(spec, layout, rank))
        elements += piece.logical.elements();
    }
    EXPECT_EQ(owned.size(), spec.place.grid == GridKind::Experts ? 8u : 4u) << spec.name;
    for (const auto& [shard, elements] : owned)
      EXPECT_EQ(elements, spec.shape.elements()) << spec.name;
  }
}

TEST(Pieces, UnitsThatDoNotDivideAreRefusedByName) {
  try {
    local_pieces(fused_qkv(), {.tensor = 3}, 0);
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
    for (const Piece& piece : mine.pieces) {
      for (int64_t i = 0; i < piece.logical.elements(); ++i)
        EXPECT_EQ(local[piece.local_row * 5 + i], logical[piece.logical.row * 5 + i]);
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

TEST(Store, ATiedParameterIsDeclaredOnce) {
  const auto device = make_device(DeviceKind::Reference, 1);
  ParamStore store(*device, {}, 0, DType::f64);
  const ParamSpec spec{.name = "table", .shape = {6, 4}};
  Param& table = store.declare_in_own_bucket(spec);
  EXPECT_EQ(&store.declare_in_own_bucket(spec), &table);
  store.allocate();
  EXPECT_EQ(store.elements(), 24);
}

// Fails when shards follow Axis::Data while reductions follow Context x Data.
TEST(Store, AShardGroupIsContextTimesData) {
  const auto device = make_device(DeviceKind::Reference, 1);
  const ParallelLayout layout{.tensor = 2, .context = 2, .data = 3, .zero = 1};
  for (int rank = 0; rank < layout.world(); ++rank) {
    PlanningCommunicator world(rank, layout.world());
    ProcessGroups groups(layout, world);
    ParamStore store(*device, layout, rank, DType::f64);
    store.declare({.name = "weight", .shape = {7, 11}});
    store.allocate();
    const FlatSection& section = store.sections().front();
    const Communicator& group = groups.over(section.group);
    EXPECT_EQ(group.size(), 6);
    EXPECT_EQ(section.index, static_cast<size_t>(group.rank()));
    EXPECT_EQ(section.bounds.size(), 7u);
    EXPECT_EQ(section.bounds.back(), section.count);
    EXPECT_EQ(section.shard().begin, section.begin + group.rank() * section.count / 6);
  }
}

// Fails when experts are summed over the dense group.
TEST(Store, ExpertsHaveSectionsOfTheirOwn) {
  const auto device = make_device(DeviceKind::Reference, 1);
  const ParallelLayout layout{.data = 8, .expert = 4, .zero = 2};
  for (const int rank : {1, 6}) {
    ParamStore store(*device, layout, rank, DType::f64);
    store.declare({.name = "expert", .shape = {7, 11}, .place = {.grid = GridKind::Experts}});
    store.declare({.name = "norm", .shape = {5}});
    store.declare({.name = "dense", .shape = {7, 11}});
    store.allocate();
    ASSERT_EQ(store.sections().size(), 3u);
    const FlatSection& experts = store.sections().back();
    EXPECT_EQ(experts.group, (GroupKey{GridKind::Experts, {Axis::Data}}));
    EXPECT_EQ(experts.bounds.size(), 3u);
    EXPECT_EQ(experts.index, rank == 6 ? 1u : 0u);
    EXPECT_EQ(store.sections().front().bounds.size(), 9u);
    EXPECT_EQ(&store.section_of(store.flat().back().begin), &experts);
  }
}

// Fails when a section ends at a multiple of its shards counted from the begin of all: after
// experts, which have fewer shards, the holders of a shared table had unequal bounds.
TEST(Store, SectionsAreSizedFromTheirOwnBegin) {
  const auto device = make_device(DeviceKind::Reference, 1);
  const ParallelLayout layout{.data = 8, .pipeline = 2, .expert = 4, .zero = 2};
  const auto bounds_of_table = [&](bool after_experts) {
    ParamStore store(*device, layout, 0, DType::f64);
    store.begin_bucket();
    if (after_experts)
      store.declare({.name = "expert", .shape = {7, 11}, .place = {.grid = GridKind::Experts}});
    Param& table = store.declare_in_own_bucket(
        {.name = "table", .shape = {60, 14}, .place = {.stages = {0, 1}}});
    store.allocate();
    for (const FlatParam& place : store.flat())
      if (place.param == &table) return store.section_of(place.begin).bounds;
    return std::vector<int64_t>();
  };
  EXPECT_EQ(bounds_of_table(false).back(), 1024);
  EXPECT_EQ(bounds_of_table(true), bounds_of_table(false));
}

// The largest first, to the shard with the fewest elements over all sections, the lower rank among
// equals; a section may leave shards empty. A shared parameter and the other roles keep equal
// shards. Fails when a parameter is divided or loads are counted per section.
TEST(Store, WholeParamsAreDealtToTheLeastLoadedShard) {
  const auto device = make_device(DeviceKind::Reference, 1);
  const ParallelLayout layout{.data = 3, .pipeline = 2, .zero = 1};
  const auto whole_matrices = [](Role role) {
    return role == Role::Matrix ? ShardRule::WholeParams : ShardRule::Equal;
  };
  for (int rank = 0; rank < 3; ++rank) {
    ParamStore store(*device, layout, rank, DType::f64, whole_matrices);
    store.declare_in_own_bucket({.name = "table", .shape = {6, 4}, .place = {.stages = {0, 1}}});
    store.begin_bucket();
    Param& a = store.declare({.name = "a", .shape = {2, 64}});
    Param& b = store.declare({.name = "b", .shape = {5, 60}});
    store.declare({.name = "norm", .shape = {7}, .role = Role::Norm});
    store.begin_bucket();
    Param& c = store.declare({.name = "c", .shape = {2, 64}});
    Param& d = store.declare({.name = "d", .shape = {1, 64}});
    store.allocate();
    const std::span<const FlatSection> sections = store.sections();
    ASSERT_EQ(sections.size(), 4u);
    EXPECT_EQ(sections[0].bounds, (std::vector<int64_t>{0, 64, 128, 192}));   // table
    EXPECT_EQ(sections[1].bounds, (std::vector<int64_t>{0, 64, 128, 192}));   // norm
    EXPECT_EQ(sections[2].bounds, (std::vector<int64_t>{0, 320, 448, 448}));  // b, a
    EXPECT_EQ(sections[3].bounds, (std::vector<int64_t>{0, 0, 64, 192}));     // d, c
    EXPECT_EQ(sections[3].index, static_cast<size_t>(rank));
    std::vector<const Param*> order;
    for (const FlatParam& place : store.flat()) order.push_back(place.param);
    EXPECT_EQ(std::vector<const Param*>(order.begin() + 2, order.end()),
              (std::vector<const Param*>{&b, &a, &d, &c}));
  }
}

// Fails when holders may have different bounds.
TEST(Store, ASharedParameterIsAloneInItsBucket) {
  const auto device = make_device(DeviceKind::Reference, 1);
  ParamStore store(*device, {.pipeline = 2}, 0, DType::f64);
  store.declare({.name = "table", .shape = {6, 4}, .place = {.stages = {0, 1}}});
  store.declare({.name = "other", .shape = {6, 4}});
  test::expect_error(ErrorKind::Internal, "not alone in its bucket", [&] { store.allocate(); });
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
  EXPECT_EQ(store.all()[0], &norm);
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
    const ParamStore::StagingLayout staging = store.plan_staging(overlaps, [&](size_t section) {
      return static_cast<size_t>(store.sections()[section].count);
    });
    EXPECT_EQ(staging.begins, (std::vector<size_t>{0, 0, 0}));
    const size_t largest = *std::ranges::max_element(staging.bytes);
    const size_t smallest = *std::ranges::min_element(staging.bytes);
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
