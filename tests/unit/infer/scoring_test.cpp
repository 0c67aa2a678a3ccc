#include "infer/scoring.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"
#include "support/tolerance.h"
#include "unit/infer/stored_model.h"

namespace bev {
namespace {

using test::expect_error;
using Ids = std::vector<int32_t>;

Ids text_of(int64_t tokens) {
  Ids ids;
  for (int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>((i * i + 3 * i) % 29));
  return ids;
}

TEST(ScoringWindows, EveryTokenIsScoredOnce) {
  for (int64_t tokens = 1; tokens <= 14; ++tokens) {
    Ids ids;
    for (int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(100 + i));
    for (const int32_t before : {-1, 7}) {
      if (before < 0 && tokens == 1) continue;
      for (int64_t length = 1; length <= 8; ++length) {
        for (int64_t overlap = 0; overlap < length; ++overlap) {
          SCOPED_TRACE(std::to_string(tokens) + " " + std::to_string(before) + " " +
                       std::to_string(length) + " " + std::to_string(overlap));
          const ScoringWindows windows(stream_of(ids), length, overlap, before);
          std::vector<int> scored(static_cast<size_t>(tokens));
          HostBatch batch;
          batch.resize(2, length, false);
          for (int64_t w = 0; w < windows.windows(); ++w) {
            windows.read(w, batch, 1);
            int new_tokens = 0;
            for (int64_t i = 0; i < length; ++i) {
              const auto slot = static_cast<size_t>(length + i);
              EXPECT_EQ(batch.positions[slot], i);
              if (batch.weight[slot] == 0) continue;
              ++new_tokens;
              const int32_t target = batch.targets[slot] - 100;
              ASSERT_GE(target, 0);
              ++scored[static_cast<size_t>(target)];
              // All that a token is scored from stands before it.
              for (int64_t j = 0; j <= i; ++j) {
                const int64_t place = target - 1 - (i - j);
                const int32_t seen = batch.tokens[static_cast<size_t>(length + j)];
                EXPECT_EQ(seen, place < 0 ? before : 100 + static_cast<int32_t>(place));
              }
              // And enough of it: at least the overlap, or everything.
              EXPECT_GE(i, w > 0 ? overlap : 0);
            }
            EXPECT_GT(new_tokens, 0);  // no window is in vain
          }
          EXPECT_EQ(scored[0], before < 0 ? 0 : 1);
          for (size_t i = 1; i < scored.size(); ++i) EXPECT_EQ(scored[i], 1) << i;
          EXPECT_EQ(windows.scored(), before < 0 ? tokens - 1 : tokens);
        }
      }
    }
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

// Nats of ids[from...] by the softmax of the logits, as a textbook has it.
double nats(LoadedModel& model, const Ids& ids, size_t from = 1) {
  const std::vector<double> all = test::all_logits(model, Ids(ids.begin(), ids.end() - 1));
  const auto vocab = static_cast<size_t>(model.vocab());
  double sum = 0;
  for (size_t i = from; i < ids.size(); ++i) {
    double normaliser = 0;
    for (size_t id = 0; id < vocab; ++id) normaliser += std::exp(all[(i - 1) * vocab + id]);
    sum += std::log(normaliser) - all[(i - 1) * vocab + static_cast<size_t>(ids[i])];
  }
  return sum;
}

double scored(LoadedModel& model, const Ids& ids, int64_t length, int64_t overlap, int32_t before) {
  const ScoringWindows windows(stream_of(ids), length, overlap, before);
  int64_t heard = 0;
  const double sum = score(model, windows, [&](int64_t done) { heard = done; });
  EXPECT_EQ(heard, windows.windows());
  return sum;
}

TEST(Score, OneWindowIsTheWholeContext) {
  for (const Config& config : {test::tiny_gpt(), test::tiny_llama()}) {
    const test::StoredModel stored(config);
    LoadedModel model = stored.load(3, 8);
    for (int64_t tokens = 2; tokens <= 8; ++tokens) {
      const Ids ids = text_of(tokens);
      const double expected = nats(model, ids);
      const double bound = expected * test::tolerance(DType::f64, 29, 10);
      EXPECT_NEAR(scored(model, ids, 8, 4, -1), expected, bound) << tokens;
      Ids with_start{28};
      with_start.insert(with_start.end(), ids.begin(), ids.end());
      EXPECT_NEAR(scored(model, ids, 8, 4, 28), nats(model, with_start), bound) << tokens;
    }
  }
}

// Window by window, with the context each has.
TEST(Score, ManyWindows) {
  const test::StoredModel stored;
  const Ids ids = text_of(30);
  for (const int64_t batch : {1, 4}) {
    LoadedModel model = stored.load(batch, 8);
    for (const int64_t overlap : {0, 3, 7}) {
      double expected = nats(model, Ids(ids.begin(), ids.begin() + 9));
      for (int64_t begin = 8 - overlap; begin + overlap < 29; begin += 8 - overlap) {
        const int64_t end = std::min<int64_t>(begin + 9, 30);
        expected += nats(model, Ids(ids.begin() + begin, ids.begin() + end),
                         static_cast<size_t>(overlap) + 1);
      }
      EXPECT_NEAR(scored(model, ids, 8, overlap, -1), expected,
                  expected * test::tolerance(DType::f64, 29, 30))
          << batch << " " << overlap;
    }
  }
}

}  // namespace
}  // namespace bev
