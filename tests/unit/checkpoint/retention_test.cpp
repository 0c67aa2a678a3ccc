#include "checkpoint/retention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

namespace bev {
namespace {

using Iterations = std::vector<int64_t>;

CheckpointConfig keeping(int64_t keep, int64_t every = 0, int64_t best = 0) {
  CheckpointConfig config;
  config.keep = keep;
  config.keep_every = every;
  config.keep_best = best;
  return config;
}

std::vector<KeptCheckpoint> plain(const Iterations& iterations) {
  std::vector<KeptCheckpoint> list;
  for (const int64_t iteration : iterations) list.push_back({.iteration = iteration});
  return list;
}

TEST(Retention, TheNewestStay) {
  const auto list = plain({10, 20, 30, 40});
  EXPECT_EQ(removable(list, keeping(0)), Iterations{});
  EXPECT_EQ(removable(list, keeping(1)), (Iterations{10, 20, 30}));
  EXPECT_EQ(removable(list, keeping(3)), Iterations{10});
  EXPECT_EQ(removable(list, keeping(4)), Iterations{});
  EXPECT_EQ(removable(list, keeping(1000000000)), Iterations{});
  EXPECT_EQ(removable({}, keeping(1)), Iterations{});
}

TEST(Retention, MultiplesStay) {
  EXPECT_EQ(removable(plain({10, 20, 30, 40, 45}), keeping(1, 20)), (Iterations{10, 30}));
  EXPECT_EQ(removable(plain({10, 20, 30, 40, 45}), keeping(0, 20)), (Iterations{10, 30}));
}

TEST(Retention, PermanentOnesStayAndDoNotCountAsOthers) {
  auto list = plain({10, 20, 30, 40});
  list[1].is_permanent = true;
  EXPECT_EQ(removable(list, keeping(1)), (Iterations{10, 30}));
  list[3].is_permanent = true;
  EXPECT_EQ(removable(list, keeping(2)), Iterations{10});
}

TEST(Retention, TheBestStay) {
  auto list = plain({10, 20, 30, 40, 50});
  list[0].valid_loss = 2.0;
  list[1].valid_loss = 1.0;
  list[2].valid_loss = std::numeric_limits<double>::quiet_NaN();
  list[3].valid_loss = 1.0;
  EXPECT_EQ(removable(list, keeping(1, 0, 1)), (Iterations{10, 20, 30})) << "the newer of equals";
  EXPECT_EQ(removable(list, keeping(1, 0, 2)), (Iterations{10, 30}));
  EXPECT_EQ(removable(list, keeping(1, 0, 3)), Iterations{30}) << "NaN is no loss";
  EXPECT_EQ(removable(list, keeping(1, 0, 9)), Iterations{30});
}

// Each line of the rule against a slow reading of it.
TEST(Retention, AnyListKeepsWhatIsPromised) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::vector<KeptCheckpoint> list;
    int64_t iteration = 0;
    for (size_t i = random() % 12; i > 0; --i) {
      KeptCheckpoint it{.iteration = iteration += static_cast<int64_t>(1 + random() % 20)};
      if (random() % 2 == 0) it.valid_loss = static_cast<double>(random() % 4);
      it.is_permanent = random() % 6 == 0;
      list.push_back(it);
    }
    const auto keep = static_cast<int64_t>(random() % 4),
               every = static_cast<int64_t>(random() % 8);
    const auto best = static_cast<int64_t>(random() % 4);
    const Iterations gone = removable(list, keeping(keep, every, best));
    ASSERT_TRUE(std::is_sorted(gone.begin(), gone.end()));
    for (size_t i = 0; i < list.size(); ++i) {
      const KeptCheckpoint& it = list[i];
      const auto newer = static_cast<int64_t>(list.size() - 1 - i);
      int64_t better = 0;
      for (size_t j = 0; it.valid_loss && j < list.size(); ++j)
        if (list[j].valid_loss && (*list[j].valid_loss < *it.valid_loss ||
                                   (*list[j].valid_loss == *it.valid_loss && j > i)))
          ++better;
      const bool stays = (keep == 0 && every == 0) || newer < std::max<int64_t>(1, keep) ||
                         it.is_permanent || (every > 0 && it.iteration % every == 0) ||
                         (it.valid_loss && better < best);
      const bool is_gone = std::find(gone.begin(), gone.end(), it.iteration) != gone.end();
      ASSERT_EQ(is_gone, !stays) << "round " << round << " iteration " << it.iteration;
      ASSERT_FALSE(is_gone && newer == 0);
    }
    // What was left stays when asked again: nothing is removed because something else was.
    std::vector<KeptCheckpoint> left;
    for (const KeptCheckpoint& it : list)
      if (std::find(gone.begin(), gone.end(), it.iteration) == gone.end()) left.push_back(it);
    ASSERT_EQ(removable(left, keeping(keep, every, best)), Iterations{}) << "round " << round;
  }
}

}  // namespace
}  // namespace bev
