#include "device/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace bev {
namespace {

TEST(ThreadPool, SplitCoversEachIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
      pool.split(count, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      for (const auto& times : seen) EXPECT_EQ(times.load(), 1);
    }
  }
}

TEST(ThreadPool, EachTaskRunsOnceOnAKnownThread) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> seen(100);
  pool.each(100, [&](int64_t task, int thread) {
    EXPECT_GE(thread, 0);
    EXPECT_LT(thread, 3);
    ++seen[static_cast<size_t>(task)];
  });
  for (const auto& times : seen) EXPECT_EQ(times.load(), 1);
}

// Fault that fails it: a barrier that lets the first thread pass.
TEST(ThreadPool, BarrierSeparatesPhases) {
  ThreadPool pool(4);
  std::vector<int> written(4, 0);
  std::atomic<int> wrong{0};
  pool.run([&](int thread) {
    for (int round = 1; round <= 50; ++round) {
      written[static_cast<size_t>(thread)] = round;
      pool.barrier();
      for (const int value : written) wrong += value != round ? 1 : 0;
      pool.barrier();
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST(ThreadPool, ThrowsWhatAThreadThrew) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.run([](int thread) {
    if (thread == 1) throw std::runtime_error("from a worker");
  }),
               std::runtime_error);
  int calls = 0;
  pool.split(1, 1, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace bev
