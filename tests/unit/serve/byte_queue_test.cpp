#include <gtest/gtest.h>

#include <algorithm>

#include "serve/http/http_parser.h"

namespace bev {
namespace {

// Uses bytes of the queue and returns how many of those behind them lie elsewhere afterwards.
size_t use_and_count_moved(ByteQueue& queue, size_t count) {
  const char* expected = queue.view().data() + count;
  queue.use(count);
  return queue.view().data() == expected ? 0 : queue.size();
}

TEST(ByteQueue, GivesTheBytesInTheirOrder) {
  ByteQueue queue;
  std::string came, used;
  for (size_t round = 0; round < 200; ++round) {
    for (size_t i = 0; i < round % 7; ++i) {
      const char byte = static_cast<char>('a' + (round + i) % 26);
      queue.add({&byte, 1});
      came += byte;
    }
    const size_t count = std::min(queue.size(), round % 4);
    used += queue.view().substr(0, count);
    queue.use(count);
    EXPECT_EQ(used + std::string(queue.view()), came);
    EXPECT_EQ(queue.empty(), queue.size() == 0);
  }
}

// Counted rather than timed: erasing each byte would move kBytes * kBytes / 2.
TEST(ByteQueue, MovesNoMoreThanIsUsed) {
  constexpr size_t kBytes = 20000;
  ByteQueue queue;
  queue.add(std::string(kBytes, 'x'));
  size_t moved = 0;
  while (!queue.empty()) moved += use_and_count_moved(queue, 1);
  EXPECT_LE(moved, kBytes);
  // As many come as are used, behind many that wait.
  queue.add(std::string(kBytes, 'x'));
  moved = 0;
  for (size_t i = 0; i < 4 * kBytes; ++i) {
    queue.add("y");
    moved += use_and_count_moved(queue, 1);
  }
  EXPECT_LE(moved, 4 * kBytes);
  EXPECT_EQ(queue.size(), kBytes);
}

// What was used does not pile up: its room is taken again.
TEST(ByteQueue, RoomIsTakenAgain) {
  ByteQueue queue;
  queue.add(std::string(1000, 'x'));
  const char* begin = queue.view().data();
  const char* farthest = begin;
  for (int i = 0; i < 100000; ++i) {
    queue.use(10);
    queue.add(std::string(10, 'y'));
    if (i == 1000) begin = farthest = queue.view().data();
    if (i > 1000) {
      begin = std::min(begin, queue.view().data());
      farthest = std::max(farthest, queue.view().data());
    }
  }
  EXPECT_LE(farthest - begin, 1010);
}

}  // namespace
}  // namespace bev
