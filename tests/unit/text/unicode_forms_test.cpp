#include <gtest/gtest.h>

#include "text/unicode/unicode.h"
#include "unit/text/random_text.h"

namespace bev {
namespace {

TEST(UnicodeForms, Decomposed) {
  EXPECT_EQ(decomposed("abc"), "abc");
  EXPECT_EQ(decomposed("caf\u00E9!"), "cafe\u0301!");
  EXPECT_EQ(decomposed("\u01D6"), "u\u0308\u0304");  // in two steps
  EXPECT_EQ(decomposed("\u212B"), "A\u030A");        // one character, then two
  EXPECT_EQ(decomposed("\uD55C\uAD6D"), "\u1112\u1161\u11AB\u1100\u116E\u11A8");
  EXPECT_EQ(decomposed("\uAC00"), "\u1100\u1161");            // without a trailing consonant
  EXPECT_EQ(decomposed("a\u0301\u0323b"), "a\u0323\u0301b");  // marks by class
  EXPECT_EQ(decomposed("a\u0301\u0300b"), "a\u0301\u0300b");  // equal classes stay
  EXPECT_EQ(decomposed("\uFB01"), "\uFB01");                  // only canonical ones
}

TEST(UnicodeForms, Composed) {
  EXPECT_EQ(composed("cafe\u0301!"), "caf\u00E9!");
  EXPECT_EQ(composed("\u1112\u1161\u11AB"), "\uD55C");
  EXPECT_EQ(composed("\u1112\u1161x\u11AB"), "\uD558x\u11AB");
  EXPECT_EQ(composed("a\u0301\u0323"), "\u1EA1\u0301");
  EXPECT_EQ(composed("a\u0301\u0301"), "\u00E1\u0301");  // the second of a class is blocked
  EXPECT_EQ(composed("\u0915\u093C"), "\u0915\u093C");   // never put together again
  EXPECT_EQ(composed("\u0958"), "\u0915\u093C");
  EXPECT_EQ(composed("\u212B"), "\u00C5");
  EXPECT_EQ(composed("e\u0301e\u0301"), "\u00E9\u00E9");
  EXPECT_EQ(composed("\u0301e"), "\u0301e");
}

TEST(UnicodeForms, LowerCased) {
  EXPECT_EQ(lower_cased("ABC xyz"), "abc xyz");
  EXPECT_EQ(lower_cased("\u00C9\u0394\u0416\u0531\U00010400"),
            "\u00E9\u03B4\u0436\u0561\U00010428");
  EXPECT_EQ(lower_cased("\u0130"), "i\u0307");
  EXPECT_EQ(lower_cased("\u0391\u03A3"), "\u03B1\u03C3");  // not the final form
  EXPECT_EQ(lower_cased("\u0100\u0101\u0102"), "\u0101\u0101\u0103");
  EXPECT_EQ(lower_cased("\u00DF\u1E9E"), "\u00DF\u00DF");
}

TEST(UnicodeForms, OfRandomTexts) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = test::random_text(random, 20);
    const std::string apart = decomposed(text);
    ASSERT_EQ(decomposed(apart), apart);
    ASSERT_EQ(composed(apart), composed(text));
    ASSERT_EQ(decomposed(composed(text)), apart);
    ASSERT_EQ(lower_cased(lower_cased(text)), lower_cased(text));
  }
}

}  // namespace
}  // namespace bev
