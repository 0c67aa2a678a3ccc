#include "data/megatron/sentence_mapping.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/temporary_directory.h"
#include "unit/data/token_files.h"

namespace bev {
namespace {

using test::Sequence;

// Documents of sentences with these lengths.
void write_sentences(const std::filesystem::path& prefix,
                     const std::vector<std::vector<size_t>>& documents) {
  TokenFileWriter writer(prefix, TokenType::u16);
  for (const auto& document : documents) {
    for (const size_t length : document) writer.add_sequence(Sequence(length, 1));
    writer.end_document();
  }
  writer.commit();
}

std::vector<SentenceRun> sorted(std::vector<SentenceRun> runs) {
  std::sort(runs.begin(), runs.end(),
            [](const SentenceRun& a, const SentenceRun& b) { return a.begin < b.begin; });
  return runs;
}

// By hand, without short samples: a run ends when it is long enough and at least two sentences are
// left, or with its document.
TEST(SentenceMapping, RunsOfSentences) {
  const test::TemporaryDirectory dir;
  write_sentences(dir / "a", {{4, 4, 4, 4, 4}, {}, {9}, {600, 2}, {3, 3}});
  const TokenFile file(dir / "a");
  const auto runs = [&](int64_t least) {
    return sorted(map_sentences(file.index(), {.end_document = 5,
                                               .epochs = 1,
                                               .most_samples = 100,
                                               .longest = 8,
                                               .seed = 1,
                                               .least_sentences = least}));
  };
  EXPECT_EQ(runs(2), (std::vector<SentenceRun>{{0, 2, 8}, {2, 5, 8}, {8, 10, 8}}));
  EXPECT_EQ(runs(1), (std::vector<SentenceRun>{{0, 2, 8}, {2, 5, 8}, {5, 6, 8}, {8, 10, 8}}));
}

TEST(SentenceMapping, EpochsUntilThereAreEnough) {
  const test::TemporaryDirectory dir;
  write_sentences(dir / "a", {{4, 4}, {4, 4}});
  const TokenFile file(dir / "a");
  SentenceMappingSpec spec{.end_document = 2,
                           .epochs = 1 << 30,
                           .most_samples = 5,
                           .longest = 8,
                           .short_probability = 0.5,
                           .seed = 1,
                           .least_sentences = 2};
  EXPECT_EQ(map_sentences(file.index(), spec).size(), 6u);  // whole epochs
  spec.least_sentences = 3;  // nobody has so many; it ends all the same
  EXPECT_TRUE(map_sentences(file.index(), spec).empty());
}

}  // namespace
}  // namespace bev
