#include "text/huggingface/pre_tokenizer.h"

#include <gtest/gtest.h>

namespace bev {
namespace {

using Pieces = std::vector<std::string>;

// Pieces separated by | in the text given to the step.
Pieces of(const std::unique_ptr<PieceStep>& step, const std::string& given) {
  PieceList list;
  size_t begin = 0;
  for (size_t at = 0; at <= given.size(); ++at) {
    if (at < given.size() && given[at] != '|') continue;
    if (begin < at) list.cuts.push_back({begin, at, begin == 0});
    begin = at + 1;
  }
  list.text = given;
  step->apply(list);
  Pieces pieces;
  ListedPieces listed(list);
  for (std::string_view piece; listed.next(piece);) pieces.emplace_back(piece);
  return pieces;
}

TEST(PreTokenizer, Patterns) {
  EXPECT_EQ(of(split_by_pattern({}), "a b|c"), (Pieces{"a b", "c"}));
  EXPECT_EQ(of(split_by_pattern({.kind = PiecePattern::Kind::Gpt2}), "it's 12345|x y"),
            (Pieces{"it", "'s", " 12345", "x", " y"}));
  EXPECT_EQ(of(split_by_pattern({.kind = PiecePattern::Kind::Llama3, .numbers = 2}), "IT'S 123"),
            (Pieces{"IT", "'S", " ", "12", "3"}));
}

TEST(PreTokenizer, Separators) {
  const auto at_dash = [](Separator separator) { return split_at_text("-", separator); };
  EXPECT_EQ(of(at_dash(Separator::Removed), "-a--b-"), (Pieces{"a", "b"}));
  EXPECT_EQ(of(at_dash(Separator::Isolated), "-a--b-"), (Pieces{"-", "a", "-", "-", "b", "-"}));
  EXPECT_EQ(of(at_dash(Separator::WithPrevious), "-a--b-"), (Pieces{"-", "a-", "-", "b-"}));
  EXPECT_EQ(of(at_dash(Separator::WithNext), "-a--b-"), (Pieces{"-a", "-", "-b", "-"}));
  EXPECT_EQ(of(at_dash(Separator::Contiguous), "-a--b-"), (Pieces{"-", "a", "--", "b", "-"}));
  EXPECT_EQ(of(at_dash(Separator::Contiguous), "ab|--"), (Pieces{"ab", "--"}));
  EXPECT_EQ(of(split_at_text("ab", Separator::Isolated), "aabab|xab"),
            (Pieces{"a", "ab", "ab", "x", "ab"}));
}

TEST(PreTokenizer, Classes) {
  EXPECT_EQ(of(split_at_class(SeparatorClass::WhiteSpace, Separator::Removed), " a\u00A0b\t\nc "),
            (Pieces{"a", "b", "c"}));
  EXPECT_EQ(of(split_at_class(SeparatorClass::Number, Separator::Isolated), "a12\u00BD"),
            (Pieces{"a", "1", "2", "\u00BD"}));
  EXPECT_EQ(of(split_at_class(SeparatorClass::Number, Separator::Contiguous), "a12b"),
            (Pieces{"a", "12", "b"}));
  EXPECT_EQ(of(split_at_class(SeparatorClass::Punctuation, Separator::Isolated), "a,b\u3002$"),
            (Pieces{"a", ",", "b", "\u3002", "$"}));
}

TEST(PreTokenizer, Bert) {
  EXPECT_EQ(of(split_for_bert(), "don't  stop|a\u00A0b\u3002$\u20AC"),
            (Pieces{"don", "'", "t", "stop", "a", "b", "\u3002", "$", "\u20AC"}));
  EXPECT_EQ(of(split_for_bert(), " \n"), Pieces{});
}

TEST(PreTokenizer, PrefixBlank) {
  EXPECT_EQ(of(prefix_blank(), "a| b|\tc"), (Pieces{" a", " b", " \tc"}));
}

TEST(PreTokenizer, Metaspace) {
  const auto step = [](Prepend prepend, bool split) { return metaspace(0x2581, prepend, split); };
  EXPECT_EQ(of(step(Prepend::Always, true), "Hey  you|so"),
            (Pieces{"\u2581Hey", "\u2581", "\u2581you", "\u2581so"}));
  EXPECT_EQ(of(step(Prepend::Always, false), "Hey you|so"),
            (Pieces{"\u2581Hey\u2581you", "\u2581so"}));
  EXPECT_EQ(of(step(Prepend::First, true), "a b|c"), (Pieces{"\u2581a", "\u2581b", "c"}));
  EXPECT_EQ(of(step(Prepend::First, true), "|c"), (Pieces{"c"}));
  EXPECT_EQ(of(step(Prepend::Never, true), "a b"), (Pieces{"a", "\u2581b"}));
  EXPECT_EQ(of(step(Prepend::Always, true), " a|\u2581b"), (Pieces{"\u2581a", "\u2581b"}));
  EXPECT_EQ(of(metaspace('_', Prepend::Always, true), "a b"), (Pieces{"_a", "_b"}));
}

TEST(PreTokenizer, BeforeWords) {
  EXPECT_EQ(of(split_before_words(), "\u2581a\u2581\u2581b|c\u2581"),
            (Pieces{"\u2581a", "\u2581\u2581b", "c", "\u2581"}));
}

}  // namespace
}  // namespace bev
