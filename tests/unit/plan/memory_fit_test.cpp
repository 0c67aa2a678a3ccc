#include "plan/memory_fit.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "config/parse/load.h"

namespace bev {
namespace {

using Args = std::vector<std::string>;

Config eight_layers(const Args& more) {
  Args args{"--num-layers",        "8",  "--hidden-size", "32",  "--num-attention-heads", "4",
            "--vocab-size",        "64", "--seq-length",  "16",  "--micro-batch-size",    "2",
            "--global-batch-size", "2",  "--device",      "cpu", "--device.threads",      "1"};
  args.insert(args.end(), more.begin(), more.end());
  return load(args).config;
}

// The flags of the first remedy for a run that may use what `enough` needs.
std::string first_remedy(const Args& asked, const Args& enough) {
  const size_t limit = plan_layout(eight_layers(enough)).largest().memory_bytes();
  const std::vector<FitSuggestion> remedies = find_remedies(eight_layers(asked), limit);
  return remedies.empty() ? "" : remedies.front().flags;
}

// Faults that fail it: flags that leave a number of layers as it was, a remedy that changes
// nothing.
TEST(FitSuggestion, RecomputesAllBlocks) {
  const Args full{"--recompute-granularity", "full"}, one{"--micro-batch-size", "1"};
  Args some = full, smaller = full;
  some.insert(some.end(), {"--recompute-method", "uniform", "--recompute-num-layers", "8"});
  smaller.insert(smaller.end(), one.begin(), one.end());
  EXPECT_EQ(first_remedy(some, full), "--recompute.layers 0");
  some = full;
  some.insert(some.end(), {"--recompute-num-layers", "1"});
  EXPECT_EQ(first_remedy(some, full), "--recompute.layers 0");
  EXPECT_EQ(first_remedy(full, smaller), "--train.micro_batch 1 --train.global_batch 2");
  EXPECT_EQ(first_remedy({}, smaller),
            "--train.micro_batch 1 --train.global_batch 2 --recompute.granularity full");
}

// Faults that fail it: one rank counted where two share, two where each has its own.
TEST(Fit, RanksThatShareAMemoryShareTheLimit) {
  Config config = eight_layers({"--global-batch-size", "4", "--parallel.ranks", "2"});
  const auto fits = [&](int sharing) {
    config.device.memory_gib = 0;
    const LayoutPlan plan = plan_layout(config);
    const double most = static_cast<double>(plan.largest().memory_bytes());
    config.device.memory_gib = 1.5 * most / (1024.0 * 1024.0 * 1024.0);
    try {
      require_fit(config, plan, sharing);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind, ErrorKind::Device);
      return false;
    }
    return true;
  };
  EXPECT_TRUE(fits(1));
  EXPECT_FALSE(fits(2));
  EXPECT_FALSE(fits(kAllRanks));
}

}  // namespace
}  // namespace bev
