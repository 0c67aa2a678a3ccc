// What rank 0 gathers and a run writes is the whole model, bit for bit.
#include <gtest/gtest.h>

#include "comm/thread_communicator.h"
#include "equivalence/layout_cases.h"
#include "ops/make_device.h"
#include "plan/dry_run.h"
#include "support/small_run.h"
#include "train/gather_model.h"
#include "verify/layout_name.h"

namespace bev::test {
namespace {

// Fails when a piece goes to the wrong place, belongs to two ranks or to none, or divided
// parameters are read before they are gathered.
TEST(WholeModel, IsGatheredFromEveryLayout) {
  for (const Config& one : {divisible_gpt(), divisible_llama()}) {
    const std::unique_ptr<Device> device = make_device(one.device);
    RankModel alone(one, *device);
    alone.params.initialize(static_cast<uint64_t>(one.train.seed));
    for (const char* layout : {"tp2", "tp4.sp", "pp4", "pp2.chunks2", "dp2.zero1", "dp2.zero3",
                               "tp2.sp.pp2.dp2.zero3"}) {
      Config many = one;
      many.parallel = parse_layout(layout);
      const Config whole = single_rank_config(many);
      run_ranks(layout_of(many).world(), std::chrono::seconds(60), [&](Communicator& world) {
        ProcessGroups groups(layout_of(many), world);
        const std::unique_ptr<Device> own = make_device(many.device);
        TrainingState assembly(many, *own, groups, dry_run(many, {.rank = world.rank()}).arenas);
        assembly.initialize();
        Exec ex = assembly.executor.exec();
        const std::unique_ptr<RankModel> gathered = gather_model(whole, assembly, ex);
        ASSERT_EQ(gathered != nullptr, world.rank() == 0);
        if (!gathered) return;
        ASSERT_EQ(gathered->params.all().size(), alone.params.all().size());
        EXPECT_TRUE(same_bits(gathered->params, alone.params, &Param::value)) << layout;
      });
    }
  }
}

}  // namespace
}  // namespace bev::test
