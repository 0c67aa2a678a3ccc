#include "data/preprocess/ordered_pipeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace bev {
namespace {

// Squares of 0 to count - 1 in the order of production.
std::vector<int> squares(int count, size_t workers, size_t slots) {
  std::vector<int> values(slots), out;
  int next = 0;
  run_ordered(workers, slots,
              {.produce =
                   [&](size_t slot) {
                     if (next == count) return false;
                     values[slot] = next++;
                     return true;
                   },
               .work =
                   [&](size_t, size_t slot) {
                     // Some take longer than others.
                     volatile int waste = 0;
                     for (int i = 0; i < values[slot] % 7 * 1000; ++i) waste = waste + 1;
                     values[slot] *= values[slot];
                   },
               .consume =
                   [&](size_t slot) {
                     out.push_back(values[slot]);
                     return true;
                   }});
  return out;
}

TEST(OrderedPipeline, OrderDoesNotDependOnTheThreads) {
  for (const int count : {0, 1, 2, 3, 100, 1000})
    for (const size_t workers : {1u, 2u, 5u})
      for (const size_t slots : {1u, 2u, 7u}) {
        const std::vector<int> out = squares(count, workers, slots);
        ASSERT_EQ(out.size(), static_cast<size_t>(count));
        for (int i = 0; i < count; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], i * i);
      }
}

TEST(OrderedPipeline, NeverMoreItemsThanSlots) {
  std::atomic<int> alive = 0, most = 0;
  int produced = 0;
  run_ordered(3, 4,
              {.produce =
                   [&](size_t) {
                     if (produced++ == 500) return false;
                     const int now = ++alive;
                     most = std::max(most.load(), now);
                     return true;
                   },
               .work = [](size_t, size_t) {},
               .consume =
                   [&](size_t) {
                     --alive;
                     return true;
                   }});
  EXPECT_LE(most, 4);
}

// The stage that throws decides nothing: what stood before it is consumed first.
TEST(OrderedPipeline, FailuresComeInOrder) {
  enum class Stage { Produce, Work, Consume };
  for (const Stage stage : {Stage::Produce, Stage::Work, Stage::Consume})
    for (const size_t workers : {1u, 4u}) {
      std::vector<int> values(5), out;
      int next = 0;
      const auto fail = [&](Stage here, int value) {
        if (here == stage && value == 20) throw std::runtime_error("twenty");
      };
      EXPECT_THROW(
          run_ordered(workers, values.size(),
                      {.produce =
                           [&](size_t slot) {
                             fail(Stage::Produce, next);
                             values[slot] = next++;
                             return true;
                           },
                       .work = [&](size_t, size_t slot) { fail(Stage::Work, values[slot]); },
                       .consume =
                           [&](size_t slot) {
                             fail(Stage::Consume, values[slot]);
                             out.push_back(values[slot]);
                             return true;
                           }}),
          std::runtime_error);
      EXPECT_EQ(out.size(), 20u);
    }
}

TEST(OrderedPipeline, TheConsumerMayEndIt) {
  int next = 0, seen = 0;
  run_ordered(2, 3,
              {.produce = [&](size_t) { return ++next > 0; },
               .work = [](size_t, size_t) {},
               .consume = [&](size_t) { return ++seen < 10; }});
  EXPECT_EQ(seen, 10);
}

}  // namespace
}  // namespace bev
