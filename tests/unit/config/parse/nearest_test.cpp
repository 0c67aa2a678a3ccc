#include <gtest/gtest.h>

#include <vector>

#include "config/parse/problem.h"

namespace bev {
namespace {

TEST(EditDistance, CountsSingleMistakes) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("abc", "abc"), 0u);
  EXPECT_EQ(edit_distance("abc", "acb"), 1u);  // swap
  EXPECT_EQ(edit_distance("abc", "abxc"), 1u);
  EXPECT_EQ(edit_distance("abc", "ac"), 1u);
  EXPECT_EQ(edit_distance("abc", "axc"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u);  // a swapped pair is not edited again
}

TEST(Nearest, NamesWhatWasMeantOrNothing) {
  const std::vector<std::string> names{"train", "plan", "bench", "version"};
  EXPECT_EQ(nearest("trian", names), "train");
  EXPECT_EQ(nearest("TRAIN", names), "train");
  EXPECT_EQ(nearest("plna", names), "plan");
  EXPECT_EQ(nearest("xyzzyxyzzy", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest(std::string(1000000, 'a'), names), "");
}

}  // namespace
}  // namespace bev
