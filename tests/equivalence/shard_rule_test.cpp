// Shards of whole parameters: the same training as one rank, and the same norms of parameters.
#include <gtest/gtest.h>

#include <map>

#include "comm/thread_communicator.h"
#include "equivalence/layout_bounds.h"
#include "equivalence/layout_cases.h"
#include "ops/elementwise.h"
#include "ops/make_device.h"
#include "optim/grad_reducer.h"
#include "optim/param_norms.h"
#include "support/small_run.h"
#include "support/two_state_models.h"
#include "verify/layout_name.h"
#include "verify/layout_run.h"
#include "verify/run_comparison.h"

namespace bev::test {
namespace {

ShardRule whole_params(Role /*role*/) { return ShardRule::WholeParams; }
ShardRule whole_matrices(Role role) {
  return role == Role::Matrix ? ShardRule::WholeParams : ShardRule::Equal;
}

// Fails when a collective, a staging buffer or a norm assumes equal shards. With four ranks some
// sections have empty shards.
TEST(WholeParams, TrainAsOneRank) {
  for (const Config& one : {divisible_gpt(), divisible_llama()}) {
    const std::vector<StepOutcome> expected = train_layout(one, 3);
    for (const char* layout :
         {"dp2", "dp2.zero1", "dp2.zero2", "dp4.zero1", "dp4.zero3", "dp4.zero3.overlap",
          "tp2.dp2.zero1", "tp2.sp.dp2.zero2", "tp2.dp2.zero3", "pp2.dp2.zero2"}) {
      Config many = one;
      many.parallel = parse_layout(layout);
      for (const ShardRuleOf rule : {whole_params, whole_matrices}) {
        for (const Difference& d :
             compare_runs(train_layout(many, 3, {.shard_rule = rule}), expected).all())
          ASSERT_LE(d.ratio, kF64.of(d.quantity)) << layout << ", step " << d.step;
      }
    }
  }
}

// An empty shard of bf16 matrix gradients ends where f32 vector gradients begin. Fails when it gets
// their dtype.
TEST(WholeParams, ReduceBf16Gradients) {
  Config config = divisible_gpt();
  config.device.kind = DeviceKind::Cpu;
  config.device.precision = Precision::Bf16;
  config.parallel = parse_layout("dp4.zero1");
  run_ranks(4, std::chrono::seconds(60), [&](Communicator& world) {
    ProcessGroups groups(layout_of(config), world);
    const std::unique_ptr<Device> device = make_device(config.device);
    RankModel model(config, *device, groups, {.shard_rule = whole_matrices});
    GradBuffer grads(model.params, StatePrecision::Bf16);
    GradReducer reducer(model.params, grads, groups);
    Arena none(*device, 0, "none");
    Exec ex{*device, device->compute_stream(), none, none, none};
    reducer.begin_step(ex);
    for (const FlatSection& section : model.params.sections())
      ops::fill(ex, {.out = grads.range(section.begin, section.count), .value = 1});
    reducer.reduce(ex);
    for (const FlatSection& section : model.params.sections()) {
      const FlatRange shard = section.shard();
      if (shard.count == 0) continue;
      for (const double sum : values_of(*device, grads.range(shard.begin, shard.count)))
        ASSERT_EQ(sum, 4);
    }
  });
}

// The squared norms of all parameters that each rank has, by name.
using Norms = std::map<std::string, double>;

Norms norms_of_values(const Config& config, ProcessGroups& groups, const ModelOptions& options) {
  const std::unique_ptr<Device> device = make_device(config.device);
  RankModel model(config, *device, groups, options);
  model.params.initialize(1);
  const ParamNorms norms(model.params, groups);
  const std::span<Param* const> params = model.params.all();
  const Buffer memory(*device, params.size() * sizeof(double), "norms");
  const Tensor squares = tensor_over(memory.data(), DType::f64, {std::ssize(params)});
  Arena none(*device, 0, "none");
  Exec ex{*device, device->compute_stream(), none, none, none};
  norms.squared_norms(
      ex, [&](int64_t begin, int64_t count) { return model.params.value_range(begin, count); },
      squares);
  const std::vector<double> values = values_of(*device, squares);
  Norms found;
  for (size_t i = 0; i < params.size(); ++i) found[params[i]->spec.name] = values[i];
  return found;
}

void expect_norms_of_one_rank(const Config& one, const char* layout, int64_t context,
                              ModelOptions options = {}) {
  SingleRankWorld alone;
  const Norms expected = norms_of_values(one, alone.groups, options);
  EXPECT_GT(expected.at("embedding.tokens.weight"), 0);
  Config many = one;
  many.parallel = parse_layout(layout);
  many.parallel.context = context;
  for (const ShardRuleOf rule : {ShardRuleOf{}, ShardRuleOf{whole_params}}) {
    options.shard_rule = rule;
    run_ranks(layout_of(many).world(), std::chrono::seconds(60), [&](Communicator& world) {
      ProcessGroups groups(layout_of(many), world);
      for (const auto& [name, square] : norms_of_values(many, groups, options))
        EXPECT_NEAR(square, expected.at(name), 1e-12 * expected.at(name))
            << layout << ", rank " << world.rank() << ": " << name;
    });
  }
}

// Fails when two ranks count an element, or no rank does.
TEST(ParamNorms, AreThoseOfOneRank) {
  for (Config one : {divisible_gpt(), divisible_llama()}) {
    one.model.tied = true;
    for (const char* layout :
         {"tp2", "tp4", "tp4.sp", "pp2", "pp4", "pp2.chunks2", "dp2", "dp2.zero1", "dp4.zero2",
          "dp2.zero3", "tp2.pp2.dp2.zero1", "tp4.dp2.zero2"})
      expect_norms_of_one_rank(one, layout, 1);
    // Two context-parallel ranks.
    for (const char* layout : {"dp2", "dp2.zero1", "dp4.zero3"})
      expect_norms_of_one_rank(one, layout, 2);
  }
}

// Stages 0, 2 and 3 hold the table. Fails when one of them counts it besides the first, or does not
// get the sum.
TEST(ParamNorms, CountATableOfThreeStagesOnce) {
  Config one = divisible_gpt();
  one.model.layers = 4;
  for (const char* layout : {"pp4", "dp2.pp4.zero1", "dp2.pp4.zero2"})
    expect_norms_of_one_rank(one, layout, 1, {.spec = two_towers});
}

}  // namespace
}  // namespace bev::test
