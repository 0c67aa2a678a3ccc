#include "text/sentence_splitter.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace bev {
namespace {

using Sentences = std::vector<std::string>;

Sentences split(std::string_view text, SentenceBlanks blanks = SentenceBlanks::Trim) {
  std::vector<std::string_view> views;
  split_sentences(text, blanks, views);
  return {views.begin(), views.end()};
}

TEST(SentenceSplitter, MarksThatEndASentence) {
  EXPECT_EQ(split("One. Two! Three? Four"), (Sentences{"One.", "Two!", "Three?", "Four"}));
  EXPECT_EQ(split("He said \"Go.\" She went. (They stayed.) Really?! Yes."),
            (Sentences{"He said \"Go.\"", "She went.", "(They stayed.)", "Really?!", "Yes."}));
  EXPECT_EQ(split("It is \u201Cover.\u201D We left."),
            (Sentences{"It is \u201Cover.\u201D", "We left."}));
  EXPECT_EQ(split("In 1999. 2000 came."), (Sentences{"In 1999.", "2000 came."}));
}

TEST(SentenceSplitter, PeriodsThatDoNot) {
  for (const char* one :
       {"Mr. Smith met Dr. Jones.", "J. R. Tolkien wrote.", "It costs 3.50 dollars.",
        "See e.g. Figure one.", "The U.S. Senate met.", "Go to a.b.com now.",
        "Wait ... there is more.", "No. 7 is here.", "etc. and so on", "He paused. . . then left."})
    EXPECT_EQ(split(one).size(), 1u) << one;
  EXPECT_EQ(split("1. First thing\n2. Second thing"),
            (Sentences{"1. First thing\n2. Second thing"}));
}

TEST(SentenceSplitter, BlankLinesEndOne) {
  EXPECT_EQ(split("A title\n\nThe text goes\non here. Next"),
            (Sentences{"A title", "The text goes\non here.", "Next"}));
  EXPECT_EQ(split("A title\n \t\nText"), (Sentences{"A title", "Text"}));
}

TEST(SentenceSplitter, NothingIsNoSentence) {
  for (const char* text : {"", " ", "\n\n\n", " \t \n"})
    EXPECT_EQ(split(text), Sentences{}) << text;
  EXPECT_EQ(split("\n\n\n", SentenceBlanks::Keep).size(), 1u);
}

// With the blanks kept nothing is lost; without, only blanks are.
TEST(SentenceSplitter, TogetherTheyAreTheText) {
  std::mt19937 random(7);
  constexpr std::string_view kLetters = "aB. !?\n\"'(1,";
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (size_t n = random() % 60; n > 0; --n) text += kLetters[random() % kLetters.size()];
    std::string kept, trimmed, bare;
    for (const std::string& s : split(text, SentenceBlanks::Keep)) kept += s;
    EXPECT_EQ(kept, text);
    for (const std::string& s : split(text)) {
      EXPECT_FALSE(s.empty());
      for (const char c : s)
        if (c != ' ' && c != '\n') trimmed += c;
    }
    for (const char c : text)
      if (c != ' ' && c != '\n') bare += c;
    EXPECT_EQ(trimmed, bare);
  }
}

}  // namespace
}  // namespace bev
