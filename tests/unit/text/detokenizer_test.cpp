#include "text/detokenizer.h"

#include <gtest/gtest.h>

namespace bev {
namespace {

std::string wikitext(std::string_view text) { return detokenize(text, Detokenizer::Wikitext); }
std::string ptb(std::string_view text) { return detokenize(text, Detokenizer::Ptb); }

TEST(Detokenizer, ByTheNameOfTheFile) {
  EXPECT_EQ(detokenizer_for("data/wikitext-103/wiki.test.tokens"), Detokenizer::Wikitext);
  EXPECT_EQ(detokenizer_for("enwiki.txt"), Detokenizer::Wikitext);
  EXPECT_EQ(detokenizer_for("ptb.test.txt"), Detokenizer::Ptb);
  EXPECT_EQ(detokenizer_for("wiki/ptb.txt"), Detokenizer::Ptb);
  EXPECT_EQ(detokenizer_for("lambada_test.jsonl"), Detokenizer::Lambada);
  EXPECT_EQ(detokenizer_for("novel.txt"), Detokenizer::None);
}

TEST(Detokenizer, PlainTextStays) {
  const std::string text = " a , b ( c ) = = @-@ \n 's N ";
  EXPECT_EQ(detokenize(text, Detokenizer::None), text);
  EXPECT_EQ(detokenize(text, Detokenizer::Lambada), text);
}

TEST(Detokenizer, WikitextNumbersAndMarks) {
  EXPECT_EQ(wikitext("a well @-@ known 3 @,@ 000 @.@ 5 of it"), "a well-known 3,000.5 of it");
  EXPECT_EQ(wikitext("one : two ; three . Four ! five ? six , seven"),
            "one: two; three. Four! five? six, seven");
  // A mark at the end of a line has no blank behind it.
  EXPECT_EQ(wikitext("the end .\nnext"), "the end .\nnext");
  EXPECT_EQ(wikitext("so . . . on"), "so. .. on");
  EXPECT_EQ(wikitext("20 \u00B0 C"), "20\u00B0C");
  EXPECT_EQ(wikitext("in N years"), "in 1 years");
}

TEST(Detokenizer, WikitextPairs) {
  EXPECT_EQ(wikitext("he ( or she ) [ 4 ] { x } said \" yes \" and"),
            "he (or she) [4] {x} said \"yes\" and");
  EXPECT_EQ(wikitext("( a ( b ) c )"), "(a ( b) c )");
  EXPECT_EQ(wikitext("(\u3000 two\nlines \n)"), "(two\nlines)");
  EXPECT_EQ(wikitext("(   )"), "()");
  EXPECT_EQ(wikitext("open ( only"), "open ( only");
  EXPECT_EQ(wikitext("\" a \" b \" c"), "\"a\" b \" c");
  EXPECT_EQ(wikitext("the ' old ' one"), "the 'old' one");
}

TEST(Detokenizer, WikitextApostrophes) {
  EXPECT_EQ(wikitext("the dogs ' tails"), "the dogs' tails");
  EXPECT_EQ(wikitext("it 's here"), "it's here");
  // Two of them are a pair first.
  EXPECT_EQ(wikitext("Jim ' s and Bob ' s"), "Jim's and Bob' s");
  EXPECT_EQ(wikitext("a ' b c ' d"), "a 'b c' d");
  EXPECT_EQ(wikitext("x /' 7/ y /' 77/ z"), "x /'[0-9]/ y /' 77/ z");
}

TEST(Detokenizer, WikitextHeadingsAndLines) {
  EXPECT_EQ(wikitext(" \n = Title = \n \n = = Part = = \n \n = = = Piece = = = \n text"),
            "\n= Title =\n\n== Part ==\n\n=== Piece ===\ntext");
  EXPECT_EQ(wikitext("= = = = Deep = = = ="), "==== Deep ====");
}

TEST(Detokenizer, Ptb) {
  EXPECT_EQ(ptb(" it 's n't N years of $ N \n and # N more \n"),
            " it'sn't1 years of $ N\nand #1 more\n");
  EXPECT_EQ(ptb(" no <unk> did n't \n pay $ N million \n"), " no <unk> didn't\npay $1 million\n");
}

}  // namespace
}  // namespace bev
