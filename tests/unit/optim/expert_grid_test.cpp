// Parameters on the expert grid together with dense ones: reduction, gradient norm, checkpoint
// pieces, update, comparison of copies.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <mutex>
#include <optional>

#include "checkpoint/local_pieces.h"
#include "comm/thread_communicator.h"
#include "device/memory.h"
#include "ops/elementwise.h"
#include "ops/make_device.h"
#include "ops/update_rule.h"
#include "optim/grad_reducer.h"
#include "optim/optimizer.h"
#include "param/param_gather.h"
#include "support/small_run.h"
#include "train/guards.h"

namespace bev::test {
namespace {

// Eight ranks: dense data 8; two experts of four data-parallel ranks each.
constexpr int kRanks = 8, kExperts = 2;

struct Elements {
  std::map<std::string, int64_t> written;  // by tensor, over all ranks
};

// The parameters of a rank: a dense matrix and the matrix of its expert.
struct ExpertModel {
  ExpertModel(Communicator& world, int zero)
      : layout{.data = kRanks, .expert = kExperts, .zero = zero},
        groups(layout, world),
        expert(layout.grid(GridKind::Experts).coordinate(world.rank(), Axis::Expert)),
        device(make_device(DeviceKind::Reference, 1)),
        params(*device, layout, world.rank(), DType::f64),
        none(*device, 0, "none"),
        scratch(*device, size_t{1} << 16, "scratch") {
    bucket = params.begin_bucket();
    params.declare({.name = "dense", .shape = {6, 5}});
    params.declare({.name = "experts." + std::to_string(expert),
                    .shape = {7, 11},
                    .place = {.grid = GridKind::Experts}});
    params.allocate();
    grads.emplace(params);
    reducer.emplace(params, *grads, groups);
  }

  Exec exec() { return {*device, device->compute_stream(), none, scratch, none}; }
  // Each rank's gradient is its rank number plus one. Ranks e, e + 2, e + 4, e + 6 hold expert e.
  void reduce(Exec& ex) {
    reducer->begin_step(ex);
    if (GradSink* sink = reducer->sink()) sink->begin_bucket_grads(ex, bucket);
    for (const Param* param : params.all())
      ops::fill(ex, {.out = param->grad, .value = static_cast<double>(groups.rank() + 1)});
    if (GradSink* sink = reducer->sink()) sink->end_bucket_grads(ex, bucket, true);
    reducer->reduce(ex);
  }
  double sum(bool is_expert) const {
    return is_expert ? 16 + 4.0 * expert : 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8;
  }

  ParallelLayout layout;
  ProcessGroups groups;
  int expert, bucket = 0;
  std::unique_ptr<Device> device;
  ParamStore params;
  std::optional<GradBuffer> grads;
  std::optional<GradReducer> reducer;
  Arena none, scratch;
};

void check_rank(Communicator& world, int zero, Elements& elements, std::mutex& mutex) {
  ExpertModel model(world, zero);
  Exec ex = model.exec();
  model.reduce(ex);
  for (const FlatSection& section : model.params.sections()) {
    const FlatRange mine = zero > 0 ? section.shard() : FlatRange{section.begin, section.count};
    const bool is_expert = section.group.grid == GridKind::Experts;
    EXPECT_EQ(section.bounds.size(), is_expert ? 5u : 9u);
    for (const FlatParam& place : model.params.flat()) {
      const FlatRange all{place.begin, place.param->spec.shape.elements()};
      const FlatRange here = intersection(all, intersection(mine, section));
      if (here.count == 0) continue;
      for (const double sum : values_of(*model.device, model.grads->range(here.begin, here.count)))
        EXPECT_EQ(sum, model.sum(is_expert)) << "rank " << world.rank();
    }
  }

  const Buffer memory(*model.device, sizeof(double), "norm");
  const Tensor square = tensor_over(memory.data(), DType::f64, {1});
  model.reducer->squared_norm(ex, square);
  EXPECT_DOUBLE_EQ(values_of(*model.device, square)[0],
                   30 * 36.0 * 36 + 77 * (16.0 * 16 + 20.0 * 20));

  const std::scoped_lock lock(mutex);
  for (const LocalPiece& piece : weights_to_save(model.params))
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

// SGD without decay, rate 1/64.
void check_update(Communicator& world, int zero) {
  ExpertModel model(world, zero);
  Exec ex = model.exec();
  OptimConfig config;
  config.kind = OptimizerKind::Sgd;
  Optimizer optimizer(config, model.params, *model.grads, model.groups, 1);
  ParamGather gather(model.params, model.groups);
  const Buffer memory(*model.device, kUpdateDecisions * sizeof(double), "decision");
  std::array<double, kUpdateDecisions> decision{};
  decision[kFactor] = decision[kApplied] = decision[kStepNumber] = 1;
  decision[kRate] = 1.0 / 64;
  model.device->upload(decision.data(), memory.data(), sizeof(decision));
  model.reduce(ex);
  optimizer.step(ex, tensor_over(memory.data(), DType::f64, {kUpdateDecisions}));
  gather.invalidate(ex);
  gather.gather(ex, model.bucket);
  for (const Param* param : model.params.all()) {
    const bool is_expert = param->spec.place.grid == GridKind::Experts;
    for (const double value : values_of(*model.device, param->value))
      EXPECT_EQ(value, -model.sum(is_expert) / 64) << "zero " << zero << ", " << param->spec.name;
  }

  ReplicaCheck check(model.params, optimizer, model.groups);
  EXPECT_EQ(check.find_difference(ex), "") << "zero " << zero;
  if (zero == 3) return;
  const Tensor expert = model.params.all().back()->value;
  if (world.rank() == 5) ops::fill(ex, {.out = slice(expert, 0, 0, 1), .value = 1});
  EXPECT_EQ(check.find_difference(ex), "experts.1 of rank 5 differs from that of ranks 1, 3, 7");
  ops::fill(ex, {.out = expert, .value = 1});
  EXPECT_EQ(check.find_difference(ex), "");
  if (zero > 0) return;
  const Tensor momentum = optimizer.states().front().flat;
  const FlatSection& section = model.params.sections().back();
  if (world.rank() == 4) ops::fill(ex, {.out = slice(momentum, 0, section.begin, 1), .value = 1});
  EXPECT_EQ(check.find_difference(ex), "sgd.momentum of rank 4 differs from that of ranks 0, 2, 6");
}

// Fails when an update of an expert is gathered over the dense shard group, or when its weights or
// states are compared with those of another expert, or with none.
TEST(ExpertGrid, UpdatesAndComparesTheCopiesOfAnExpert) {
  for (const int zero : {0, 1, 2, 3})
    run_ranks(kRanks, std::chrono::seconds(60),
              [&](Communicator& world) { check_update(world, zero); });
}

}  // namespace
}  // namespace bev::test
