#include <gtest/gtest.h>

#include "infer/scorer.h"
#include "support/expect_error.h"

namespace bev {
namespace {

using test::expect_error;
using Ids = std::vector<int32_t>;

Ids counted(int64_t tokens) {
  Ids ids;
  for (int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(100 + i));
  return ids;
}

TEST(ScoringWindows, EveryTokenIsScoredOnce) {
  for (int64_t tokens = 1; tokens <= 14; ++tokens) {
    const Ids ids = counted(tokens);
    for (const int32_t before : {-1, 7}) {
      if (before < 0 && tokens == 1) continue;
      for (int64_t length = 1; length <= 8; ++length) {
        for (int64_t overlap = 0; overlap < length; ++overlap) {
          SCOPED_TRACE(std::to_string(tokens) + " " + std::to_string(before) + " " +
                       std::to_string(length) + " " + std::to_string(overlap));
          const ScoringWindows windows(stream_of(ids), length, overlap, before);
          std::vector<int> scored(static_cast<size_t>(tokens));
          for (int64_t w = 0; w < windows.windows(); ++w) {
            const ScoringItem item = windows.item(w);
            EXPECT_LE(item.ids.size(), static_cast<size_t>(length) + 1);
            // No window is in vain, and each sees at least the overlap.
            EXPECT_GT(item.scored(), 0);
            EXPECT_EQ(item.first, w > 0 ? overlap + 1 : 1);
            const int64_t place = windows.first_place(w);
            for (int64_t i = item.first; i < static_cast<int64_t>(item.ids.size()); ++i) {
              const int64_t at = place + i - item.first;
              EXPECT_EQ(item.ids[static_cast<size_t>(i)], 100 + at);
              ++scored.at(static_cast<size_t>(at));
            }
            // All that a token is scored from stands before it.
            for (int64_t i = 0; i < item.first; ++i) {
              const int64_t at = place + i - item.first;
              EXPECT_EQ(item.ids[static_cast<size_t>(i)], at < 0 ? before : 100 + at);
            }
          }
          EXPECT_EQ(scored[0], before < 0 ? 0 : 1);
          for (size_t i = 1; i < scored.size(); ++i) EXPECT_EQ(scored[i], 1) << i;
          EXPECT_EQ(windows.scored(), before < 0 ? tokens - 1 : tokens);
        }
      }
    }
  }
}

// Megatron's windows begin every `stride` tokens; all but the first count their last `stride`
// targets.
TEST(ScoringWindows, OfAStrideAreThoseOfMegatron) {
  constexpr int64_t kLength = 8, kStride = 3;
  const Ids ids = counted(30);
  const ScoringWindows windows(stream_of(ids), kLength, kLength - kStride, -1);
  EXPECT_EQ(windows.windows(), 8);
  for (int64_t w = 0; w < windows.windows(); ++w) {
    const ScoringItem item = windows.item(w);
    EXPECT_EQ(item.ids.front(), 100 + w * kStride);
    const bool is_whole = w < 7;
    EXPECT_EQ(item.ids.size(), is_whole ? 9u : 9u);
    EXPECT_EQ(item.scored(), w == 0 ? 8 : kStride);
  }
}

TEST(ScoringWindows, TooFewTokens) {
  const Ids none, one{3};
  expect_error(ErrorKind::Data, "too few tokens to score: 0",
               [&] { ScoringWindows(stream_of(none), 4, 0, 7); });
  expect_error(ErrorKind::Data, "too few tokens to score: 1",
               [&] { ScoringWindows(stream_of(one), 4, 0, -1); });
  const Ids many(10, 1);
  expect_error(ErrorKind::Internal, "overlap", [&] { ScoringWindows(stream_of(many), 4, 4, 7); });
  expect_error(ErrorKind::Internal, "overlap", [&] { ScoringWindows(stream_of(many), 4, -1, 7); });
}

TEST(TokenStream, PartsAndJoints) {
  const Ids ids = counted(10), more = counted(4);
  const TokenStream both = joined(part_of(stream_of(ids), 6, 3), stream_of(more));
  EXPECT_EQ(both.size, 7);
  for (int64_t begin = 0; begin < 7; ++begin) {
    for (int64_t count = 1; begin + count <= 7; ++count) {
      Ids out(static_cast<size_t>(count));
      both.read(begin, out);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = begin + i;
        EXPECT_EQ(out[static_cast<size_t>(i)], at < 3 ? 106 + at : 100 + at - 3);
      }
    }
  }
}

}  // namespace
}  // namespace bev
