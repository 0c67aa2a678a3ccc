#include "tensor/rectangle.h"

#include <gtest/gtest.h>

#include <vector>

namespace bev {
namespace {

TEST(Rectangle, SeesATensorAsAMatrix) {
  EXPECT_EQ(whole_of({}), (Rectangle{.rows = 1, .columns = 1}));
  EXPECT_EQ(whole_of({5}), (Rectangle{.rows = 5, .columns = 1}));
  EXPECT_EQ(whole_of({5, 3, 2}), (Rectangle{.rows = 5, .columns = 6}));
  EXPECT_EQ(whole_of({0, 3}).elements(), 0);
}

TEST(Rectangle, Intersection) {
  const Rectangle a{.row = 1, .column = 2, .rows = 4, .columns = 4};
  EXPECT_EQ(intersection(a, {.row = 3, .column = 0, .rows = 9, .columns = 3}),
            (Rectangle{.row = 3, .column = 2, .rows = 2, .columns = 1}));
  EXPECT_EQ(intersection(a, {.row = 5, .column = 2, .rows = 2, .columns = 2}).elements(), 0);
  EXPECT_EQ(intersection(a, {.row = 1, .column = 6, .rows = 2, .columns = 2}).elements(), 0);
}

// Every element once, in order, and no block is too large.
TEST(Rectangle, BlocksCoverItInOrder) {
  for (const Rectangle& all : {Rectangle{.rows = 5, .columns = 7},
                               Rectangle{.row = 2, .column = 3, .rows = 4, .columns = 1},
                               Rectangle{.rows = 1, .columns = 20}, Rectangle{}}) {
    for (const int64_t most : {1, 2, 6, 7, 8, 14, 15, 1000}) {
      int64_t next = 0;
      for_each_block(all, most, [&](const Rectangle& block) {
        EXPECT_LE(block.elements(), most);
        EXPECT_GT(block.elements(), 0);
        for (int64_t row = block.row; row < block.row_end(); ++row)
          for (int64_t column = block.column; column < block.column_end(); ++column)
            EXPECT_EQ((row - all.row) * all.columns + column - all.column, next++);
      });
      EXPECT_EQ(next, all.elements()) << most;
    }
  }
}

}  // namespace
}  // namespace bev
