#include "infer/embedding/embedding_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/file.h"
#include "ops/make_device.h"
#include "support/expect_error.h"
#include "unit/infer/embedding/written_embeddings.h"

namespace bev {
namespace {

using test::expect_error;
using test::TemporaryDirectory;
using test::write_embeddings;

using Matches = std::vector<std::vector<EmbeddingMatch>>;
using Questions = std::vector<std::vector<float>>;

std::vector<float> normal_values(size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(engine);
  return values;
}

Questions normal_questions(int64_t count, int64_t width) {
  Questions questions;
  for (int64_t i = 0; i < count; ++i)
    questions.push_back(normal_values(static_cast<size_t>(width), 1000 + static_cast<uint32_t>(i)));
  return questions;
}

// All rows sorted by float64 scores.
Matches brute_force(const std::vector<float>& values, const Questions& questions,
                    const EmbeddingSearch& search) {
  Matches all;
  for (const std::vector<float>& question : questions) {
    std::vector<EmbeddingMatch> matches;
    const size_t width = question.size();
    for (size_t row = 0; row * width < values.size(); ++row) {
      double score = 0, row_length = 0, length = 0;
      for (size_t i = 0; i < width; ++i) {
        const double x = values[row * width + i], q = question[i];
        score += q * x;
        row_length += x * x;
        length += q * q;
      }
      if (search.similarity == Similarity::Cosine) {
        const double lengths = std::sqrt(length) * std::sqrt(row_length);
        score = lengths > 0 ? score / lengths : 0;
      }
      matches.push_back({.row = static_cast<int64_t>(row), .score = score});
    }
    std::stable_sort(matches.begin(), matches.end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
    matches.resize(std::min(matches.size(), static_cast<size_t>(search.top)));
    all.push_back(std::move(matches));
  }
  return all;
}

class EmbeddingSearchTest : public ::testing::Test {
 protected:
  const EmbeddingFile& write(int64_t rows, int64_t width, const std::vector<float>& values) {
    write_embeddings(dir_ / "e.npy", rows, width, values);
    file_.emplace(dir_ / "e.npy");
    return *file_;
  }

  void expect_brute_force(DeviceKind kind, int threads) {
    const auto device = make_device(kind, threads);
    for (const auto& [rows, width] :
         {std::pair<int64_t, int64_t>{1, 1}, {7, 3}, {130, 17}, {517, 64}}) {
      const std::vector<float> values =
          normal_values(static_cast<size_t>(rows * width), static_cast<uint32_t>(rows));
      const EmbeddingFile& file = write(rows, width, values);
      for (const int64_t questions : {1, 5, 40})
        for (const Similarity similarity : {Similarity::Dot, Similarity::Cosine})
          for (const size_t tile : {size_t{1}, size_t{4099}, size_t{0}}) {
            const EmbeddingSearch search{.top = 9, .similarity = similarity, .tile_bytes = tile};
            const Questions asked = normal_questions(questions, width);
            EXPECT_EQ(search_embeddings(*device, file, asked, search),
                      brute_force(values, asked, search))
                << rows << " x " << width << ", " << questions << " questions, tile " << tile;
          }
    }
  }

  TemporaryDirectory dir_;
  std::optional<EmbeddingFile> file_;
};

TEST_F(EmbeddingSearchTest, FindsWhatBruteForceFinds) {
  expect_brute_force(DeviceKind::Reference, 1);
  expect_brute_force(DeviceKind::Cpu, 1);
  expect_brute_force(DeviceKind::Cpu, 3);
}

TEST_F(EmbeddingSearchTest, CudaFindsWhatBruteForceFinds) {
  if (!why_no_cuda().empty()) GTEST_SKIP() << why_no_cuda();
  expect_brute_force(DeviceKind::Cuda, 1);
}

// Scores that f32 cannot tell apart, in an order that a sum in f32 would change. Fails when rows
// are ranked by the GEMM's estimates, or when these exclude a match.
TEST_F(EmbeddingSearchTest, DecidesNearTiesInFloat64) {
  constexpr int64_t kRows = 400, kWidth = 96;
  const std::vector<float> base = normal_values(kWidth, 1);
  std::vector<float> values;
  for (int64_t row = 0; row < kRows; ++row) {
    values.insert(values.end(), base.begin(), base.end());
    float& changed = values[static_cast<size_t>(row * kWidth + row % kWidth)];
    for (int64_t step = row * 7 % 5; step > 0; --step) changed = std::nextafter(changed, 9.0f);
  }
  const EmbeddingFile& file = write(kRows, kWidth, values);
  const auto device = make_device(DeviceKind::Cpu, 2);
  const Questions questions = normal_questions(3, kWidth);
  for (const Similarity similarity : {Similarity::Dot, Similarity::Cosine}) {
    const EmbeddingSearch search{.top = 10, .similarity = similarity, .tile_bytes = 1 << 14};
    EXPECT_EQ(search_embeddings(*device, file, questions, search),
              brute_force(values, questions, search));
  }
}

TEST_F(EmbeddingSearchTest, TakesTheLowerOfEqualRows) {
  std::vector<float> values(2 * 50, 1.0f);
  values[2 * 30] = 2;
  const EmbeddingFile& file = write(50, 2, values);
  const auto device = make_device(DeviceKind::Cpu, 1);
  for (const size_t tile : {size_t{1}, size_t{200}, size_t{0}}) {
    const Matches found =
        search_embeddings(*device, file, {{1, 1}}, {.top = 4, .tile_bytes = tile});
    EXPECT_EQ(found.front(), (std::vector<EmbeddingMatch>{{30, 3}, {0, 2}, {1, 2}, {2, 2}}));
  }
}

TEST_F(EmbeddingSearchTest, GivesAllRowsIfFewerThanAskedFor) {
  const std::vector<float> values = normal_values(3 * 4, 5);
  const EmbeddingFile& file = write(3, 4, values);
  const auto device = make_device(DeviceKind::Cpu, 1);
  const EmbeddingSearch search{.top = 1000};
  const Questions questions = normal_questions(2, 4);
  const Matches found = search_embeddings(*device, file, questions, search);
  EXPECT_EQ(found.front().size(), 3U);
  EXPECT_EQ(found, brute_force(values, questions, search));
}

// Rows whose squares are beyond f32, rows of 0, and a question of 0. Fails when their estimates
// are trusted.
TEST_F(EmbeddingSearchTest, ScoresExtremeRowsExactly) {
  std::vector<float> values = normal_values(6 * 4, 5);
  for (size_t column = 0; column < 4; ++column) {
    values[column] *= 1e30f;
    values[4 + column] *= 1e-30f;
    values[8 + column] = 0;
    values[12 + column] *= 1e-42f;
  }
  const EmbeddingFile& file = write(6, 4, values);
  const auto device = make_device(DeviceKind::Cpu, 1);
  Questions questions = normal_questions(4, 4);
  questions.push_back({0, 0, 0, 0});
  questions.push_back({1e-30f, 0, 0, 1e-38f});
  for (const Similarity similarity : {Similarity::Dot, Similarity::Cosine})
    for (const int64_t top : {1, 2, 6}) {
      const EmbeddingSearch search{.top = top, .similarity = similarity, .tile_bytes = 1};
      EXPECT_EQ(search_embeddings(*device, file, questions, search),
                brute_force(values, questions, search));
    }
}

// Cosines do not depend on the length of a row. Fails when the eps of the norm lowers the estimate
// of a short row that is a match.
TEST_F(EmbeddingSearchTest, FindsShortRows) {
  constexpr int64_t kWidth = 32;
  const auto device = make_device(DeviceKind::Cpu, 1);
  for (const float length : {1e-10f, 1e-12f, 2e-14f, 1e-14f, 1e-15f}) {
    const Questions questions = normal_questions(1, kWidth);
    std::vector<float> values = questions.front();
    values.front() += 0.05f;  // the row that excludes others
    for (const float x : questions.front()) values.push_back(x * length);
    const EmbeddingFile& file = write(2, kWidth, values);
    const EmbeddingSearch search{.top = 1, .similarity = Similarity::Cosine};
    EXPECT_EQ(search_embeddings(*device, file, questions, search),
              brute_force(values, questions, search))
        << length;
  }
}

TEST_F(EmbeddingSearchTest, RefusesRowsThatAreNotFinite) {
  const auto device = make_device(DeviceKind::Cpu, 1);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> values = normal_values(40 * 3, 5);
    values[37 * 3 + 1] = bad;
    const EmbeddingFile& file = write(40, 3, values);
    expect_error(ErrorKind::Data, "row 37 is not finite: column 1",
                 [&] { search_embeddings(*device, file, {{1, 0, 0}}, {.top = 1}); });
  }
}

int64_t resident_file_bytes() {
  const std::string status = [] {
    std::ifstream file("/proc/self/status");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  const size_t at = status.find("RssFile:");
  return at == std::string::npos ? 0 : std::atoll(status.c_str() + at + 8) * 1024;
}

// Fails when tiles that are done stay in memory.
TEST_F(EmbeddingSearchTest, KeepsOneTileInMemory) {
  constexpr int64_t kRows = 1 << 16, kWidth = 128;
  const EmbeddingFile& file =
      write(kRows, kWidth, normal_values(static_cast<size_t>(kRows * kWidth), 3));
  const auto device = make_device(DeviceKind::Cpu, 1);
  const int64_t before = resident_file_bytes();
  int64_t most = 0, last = 0;
  search_embeddings(*device, file, normal_questions(1, kWidth), {.tile_bytes = size_t{2} << 20},
                    [&](int64_t rows) {
                      EXPECT_GT(rows, last);
                      last = rows;
                      most = std::max(most, resident_file_bytes() - before);
                    });
  EXPECT_EQ(last, kRows);
  EXPECT_LT(most, int64_t{8} << 20);  // of 32 MiB
}

}  // namespace
}  // namespace bev
