#include <gtest/gtest.h>

#include <fstream>

#include "data/training_data.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

TEST(Fingerprint, ChangesWithTheSizeAndBothEndsOfAFile) {
  const test::TemporaryDirectory folder;
  const std::string prefix = (folder.path() / "tokens").string();
  std::string content(300'000, 'x');
  const auto now = [&] {
    for (const char* ending : {".bin", ".idx"})
      std::ofstream(prefix + ending, std::ios::binary) << content;
    TrainingData data;
    data.parts.push_back({.prefix = prefix});
    data.parts.push_back({.prefix = prefix});
    return fingerprint(data);
  };
  const std::string before = now();
  EXPECT_EQ(std::count(before.begin(), before.end(), '\n'), 2);
  EXPECT_EQ(now(), before);
  content.front() = 'y';
  const std::string first = now();
  EXPECT_NE(first, before);
  content.back() = 'y';
  const std::string last = now();
  EXPECT_NE(last, first);
  content += "y";
  EXPECT_NE(now(), last);
  TrainingData with_titles;
  with_titles.titles = prefix;
  EXPECT_EQ(fingerprint(with_titles), now());
}

TEST(Fingerprint, OfMadeUpTokensIsEmpty) { EXPECT_EQ(fingerprint({}), ""); }

}  // namespace
}  // namespace bev
