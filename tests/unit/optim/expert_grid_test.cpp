// Parameters on the expert grid together with dense ones: reduction, gradient norm, checkpoint
// pieces.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "checkpoint/local_pieces.h"
#include "comm/thread_communicator.h"
#include "device/memory.h"
#include "ops/elementwise.h"
#include "ops/make_device.h"
#include "optim/grad_reducer.h"
#include "support/small_run.h"

namespace bev::test {
namespace {

// Eight ranks: dense data 8; two experts of four data-parallel ranks each.
constexpr int kRanks = 8, kExperts = 2;

struct Elements {
  std::map<std::string, int64_t> written;  // by tensor, over all ranks
};

// Each rank's gradient is its rank number plus one.
void check_rank(Communicator& world, int zero, Elements& elements, std::mutex& mutex) {
  const ParallelLayout layout{.data = kRanks, .expert = kExperts, .zero = zero};
  ProcessGroups groups(layout, world);
  const int expert = layout.grid(GridKind::Experts).coordinate(world.rank(), Axis::Expert);
  DeviceConfig config;
  config.kind = DeviceKind::Reference;
  const std::unique_ptr<Device> device = make_device(config);
  ParamStore params(*device, layout, world.rank(), DType::f64);
  params.begin_bucket();
  params.declare({.name = "dense", .shape = {6, 5}});
  params.declare({.name = "experts." + std::to_string(expert),
                  .shape = {7, 11},
                  .place = {.grid = GridKind::Experts}});
  params.allocate();
  GradBuffer grads(params);
  GradReducer reducer(params, grads, groups);
  Arena none(*device, 0, "none"), scratch(*device, size_t{1} << 16, "scratch");
  Exec ex{*device, device->compute_stream(), none, scratch, none};
  reducer.begin_step(ex);
  if (GradSink* sink = reducer.sink()) sink->begin_bucket_grads(ex, 1);
  for (const Param* param : params.all())
    ops::fill(ex, {.out = param->grad, .value = static_cast<double>(world.rank() + 1)});
  if (GradSink* sink = reducer.sink()) sink->end_bucket_grads(ex, 1, true);
  reducer.reduce(ex);

  // Ranks e, e + 2, e + 4, e + 6 hold expert e.
  const double dense = 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8, experts = 16 + 4.0 * expert;
  for (const FlatSection& section : params.sections()) {
    const FlatRange mine = zero > 0 ? section.shard() : FlatRange{section.begin, section.count};
    const bool is_expert = section.group.grid == GridKind::Experts;
    EXPECT_EQ(section.bounds.size(), is_expert ? 5u : 9u);
    for (const FlatParam& place : params.flat()) {
      const FlatRange all{place.begin, place.param->spec.shape.elements()};
      const FlatRange here = intersection(all, mine);
      if (here.count == 0) continue;
      for (const double sum : values_of(*device, grads.range(here.begin, here.count)))
        EXPECT_EQ(sum, is_expert ? experts : dense) << "rank " << world.rank();
    }
  }

  const Buffer memory(*device, sizeof(double), "norm");
  const Tensor square = tensor_over(memory.data(), DType::f64, {1});
  reducer.squared_norm(ex, square);
  EXPECT_DOUBLE_EQ(values_of(*device, square)[0],
                   30 * dense * dense + 77 * (16.0 * 16 + 20.0 * 20));

  const std::scoped_lock lock(mutex);
  for (const LocalPiece& piece : weights_to_save(params))
    elements.written[piece.param->spec.name] += piece.piece.where.elements();
}

// Fails when gradients of experts are summed over the dense data-parallel group, when a shard has
// the bounds of the other grid, when the norm counts an expert twice, or when several ranks write
// the same expert.
TEST(ExpertGrid, HasItsOwnGroupInReductionNormAndCheckpoint) {
  for (const int zero : {0, 1, 2, 3}) {
    Elements elements;
    std::mutex mutex;
    run_ranks(kRanks, std::chrono::seconds(60),
              [&](Communicator& world) { check_rank(world, zero, elements, mutex); });
    EXPECT_EQ(elements.written,
              (std::map<std::string, int64_t>{{"dense", 30}, {"experts.0", 77}, {"experts.1", 77}}))
        << "zero " << zero;
  }
}

}  // namespace
}  // namespace bev::test
