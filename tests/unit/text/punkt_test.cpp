// Punkt with small parameters; the sentences and learned words are those of NLTK 3.10.4.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "base/error.h"
#include "support/temporary_directory.h"
#include "text/punkt/punkt_splitter.h"
#include "text/punkt/punkt_trainer.h"
#include "text/unicode/letter_case.h"

namespace bev {
namespace {

using Sentences = std::vector<std::string>;

PunktTexts tiny_texts() {
  return {"mr\ndr\np.m\netc\n", "##number##\tjan\nj\tbach\n", "then\nhe\n",
          "the\t112\nhe\t114\nthen\t18\nsmith\t4\nand\t32\nbrown\t4\nbach\t4\nit\t48\n"};
}

Sentences punkt(std::string_view text, SentenceBlanks blanks = SentenceBlanks::Trim) {
  static PunktSplitter splitter(
      std::make_shared<const PunktParameters>(parse_punkt(tiny_texts(), "tiny")));
  std::vector<std::string_view> views;
  splitter.split(text, blanks, views);
  return {views.begin(), views.end()};
}

std::string words_in(std::string_view text) {
  std::string joined;
  PunktWords words(text);
  for (PunktWord word; words.next(word);) (joined += word.text) += '|';
  return joined;
}

std::string lower(std::string_view text) {
  std::string result;
  append_python_lower(text, result);
  return result;
}

TEST(PunktWords, EndAtPunctuationButNotAtPeriods) {
  EXPECT_EQ(words_in("Mr. Smith's (old) dog, a 1,000.5 kg--beast..."),
            "Mr.|Smith|'s|(|old|)|dog|,|a|1,000.5|kg|--|beast|...|");
  EXPECT_EQ(words_in("a . . . b. .. x,y, #z"), "a|. . .|b.|..|x,y|,|#|z|");
  EXPECT_EQ(words_in("one\n\x1C\n\u00A0two\u201D"), "one|two|\u201D|");
}

TEST(PunktWords, LinesAndParagraphs) {
  PunktWords words("a b\nc\n \nd");
  std::string starts;
  for (PunktWord word; words.next(word);)
    starts += word.starts_paragraph ? 'P' : word.starts_line ? 'L' : '-';
  EXPECT_EQ(starts, "L-LP");
}

TEST(PunktWords, PropertiesFollowUnicode) {
  EXPECT_TRUE(PunktWord{"\u00C9."}.is_initial());
  EXPECT_FALSE(PunktWord{"1."}.is_initial());
  EXPECT_TRUE(PunktWord{"\u0661\u0662,5."}.is_number());
  EXPECT_FALSE(PunktWord{"1a"}.is_number());
  EXPECT_TRUE(PunktWord{"\u0434\u043E\u043C"}.is_letters());
  EXPECT_TRUE(PunktWord{"\u0416x"}.begins_upper());
  EXPECT_TRUE(PunktWord{"\u00DFx"}.begins_lower());
  EXPECT_FALSE(PunktWord{"\u01C5x"}.begins_upper());
}

TEST(PunktWords, LowerCaseKnowsTheFinalSigma) {
  EXPECT_EQ(lower("\u039F\u0394\u039F\u03A3"), "\u03BF\u03B4\u03BF\u03C2");
  EXPECT_EQ(lower("\u03A3\u0391\u03A3."), "\u03C3\u03B1\u03C2.");
  EXPECT_EQ(lower("\u03A3"), "\u03C3");
  EXPECT_EQ(lower("\u0130X"), "i\u0307x");
  EXPECT_EQ(lower("A\xFF\u00C9\xC3"), "a\xFF\u00E9\xC3");
}

TEST(PunktSplitter, AbbreviationsEndNoSentenceBeforeAName) {
  EXPECT_EQ(punkt("Mr. Smith came. Dr. Brown left at 5 p.m. The end."),
            (Sentences{"Mr. Smith came.", "Dr. Brown left at 5 p.m.", "The end."}));
  EXPECT_EQ(punkt("Cats etc. Then dogs. And etc. and more."),
            (Sentences{"Cats etc.", "Then dogs.", "And etc. and more."}));
  EXPECT_EQ(punkt("The ex-mr. Smith. End."), (Sentences{"The ex-mr. Smith.", "End."}));
}

TEST(PunktSplitter, InitialsAndNumbers) {
  EXPECT_EQ(punkt("J. Bach and X. Brown met. A. The end."),
            (Sentences{"J. Bach and X. Brown met.", "A.", "The end."}));
  EXPECT_EQ(punkt("On 5. Jan it rained. In 7. 8 came."),
            (Sentences{"On 5. Jan it rained.", "In 7.", "8 came."}));
}

TEST(PunktSplitter, ClosingQuotesAndBracketsBelongToTheSentenceBefore) {
  EXPECT_EQ(punkt("(One.) \"Two!\" He said \u201CThree.\u201D Four?--Five. x"),
            (Sentences{"(One.)", "\"Two!\"", "He said \u201CThree.\u201D", "Four?--Five.", "x"}));
  EXPECT_EQ(punkt("Very bad!!! Go on... and on."), (Sentences{"Very bad!!!", "Go on... and on."}));
}

TEST(PunktSplitter, WhiteSpaceIsCutOrKept) {
  const std::string text = " One.  Two.\n\nThree. \n";
  EXPECT_EQ(punkt(text), (Sentences{" One.", "Two.", "Three."}));
  EXPECT_EQ(punkt(text, SentenceBlanks::Keep), (Sentences{" One.  ", "Two.\n\n", "Three."}));
  EXPECT_EQ(punkt("a.b c.Then (d.) E", SentenceBlanks::Keep), (Sentences{"a.b c.Then (d.)", "E"}));
  for (const char* empty : {"", " ", "\n\x1C"}) EXPECT_EQ(punkt(empty), Sentences{}) << empty;
  EXPECT_EQ(punkt("a. \x1C"), (Sentences{"a."}));
}

// Random bytes: sentences are views into the text, in order, and none is empty.
TEST(PunktSplitter, AnyBytesAreSplit) {
  std::mt19937 random(5);
  const std::string_view bytes = "aB.?! \n-')\"\xE2\x80\x9D\xC2\xA0\xFF,1";
  for (int round = 0; round < 3000; ++round) {
    std::string text(random() % 40, ' ');
    for (char& c : text) c = bytes[random() % bytes.size()];
    PunktSplitter splitter(
        std::make_shared<const PunktParameters>(parse_punkt(tiny_texts(), "tiny")));
    for (const SentenceBlanks blanks : {SentenceBlanks::Trim, SentenceBlanks::Keep}) {
      std::vector<std::string_view> found;
      splitter.split(text, blanks, found);
      const char* at = text.data();
      for (const std::string_view sentence : found) {
        ASSERT_FALSE(sentence.empty());
        ASSERT_GE(sentence.data(), at);
        at = sentence.data() + sentence.size();
      }
      ASSERT_LE(at, text.data() + text.size());
    }
  }
}

void expect_refused(size_t file, const std::string& content, const std::string& why) {
  PunktTexts texts = tiny_texts();
  texts[file] = content;
  try {
    parse_punkt(texts, "folder");
    ADD_FAILURE() << why;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::Data);
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

TEST(PunktParameters, BadFilesAreRefusedByName) {
  expect_refused(0, "mr\n\xFF\n", "folder/abbrev_types.txt:2: not valid UTF-8");
  expect_refused(1, "a\tb\nab\n", "folder/collocations.tab:2: invalid line \"ab\"");
  expect_refused(1, "a\tb\tc\n", "folder/collocations.tab:1: invalid line");
  expect_refused(3, "a\tx\n", "folder/ortho_context.tab:1: invalid orthographic context \"x\"");
  expect_refused(3, "a\t-1\n", "invalid orthographic context");
  expect_refused(3, "a\t99999999999\n", "invalid orthographic context");
}

TEST(PunktParameters, FilesAreReadAsWritten) {
  const PunktTexts texts = punkt_texts(parse_punkt(tiny_texts(), "tiny"));
  EXPECT_EQ(texts[0], "dr\netc\nmr\np.m\n");
  EXPECT_EQ(punkt_texts(parse_punkt(texts, "tiny")), texts);
  PunktTexts carriage = texts;
  for (std::string& text : carriage)
    for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2)
      text.replace(at, 1, "\r\n");
  EXPECT_EQ(punkt_texts(parse_punkt(carriage, "tiny")), texts);
}

TEST(PunktParameters, FoldersOfNltk) {
  const test::TemporaryDirectory scratch;
  const std::filesystem::path folder =
      scratch.path() / "data" / "tokenizers" / "punkt_tab" / "klingon";
  std::filesystem::create_directories(folder);
  ::setenv("NLTK_DATA", (":/none:" + (scratch.path() / "data").string()).c_str(), 1);
  EXPECT_EQ(find_punkt_folder("klingon"), folder);
  EXPECT_EQ(find_punkt_folder("elvish"), std::nullopt);
  ::unsetenv("NLTK_DATA");
  EXPECT_EQ(find_punkt_folder("klingon"), std::nullopt);
  try {
    read_punkt_folder(folder);
    ADD_FAILURE() << "a folder without files was read";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("klingon/abbrev_types.txt: no such file"),
              std::string::npos)
        << error.what();
  }
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(PunktTrainer, LearnsAbbreviationsStartersAndCollocations) {
  PunktTrainer trainer;
  trainer.add(
      repeated("The town saw rain on 5. May in the town and a man saw 7 men. Then he met the "
               "old man in the rain. \"A man in town met Mr. Brown, who saw rain in May\", "
               "said the old man. Then rain came to town and men met the man\n",
               60) +
      "It was ca. five and ref. , later.\n\nThe end.");
  const PunktTexts texts = punkt_texts(trainer.finish());
  EXPECT_EQ(texts[0], "ca\nmr\nref\n");
  EXPECT_EQ(texts[1], "##number##\tmay\n");
  EXPECT_EQ(texts[2], "then\n");
  EXPECT_EQ(
      texts[3],
      "a\t36\nand\t32\nbrown\t8\nca.\t32\ncame\t32\nend\t32\nfive\t64\nhe\t32\nin\t32\nit\t8\n"
      "later\t32\nman\t32\nmay\t12\nmen\t32\nmet\t32\nmr.\t4\nold\t32\non\t32\nrain\t32\nref\t32\n"
      "said\t32\nsaw\t32\nthe\t42\nthen\t2\nto\t32\ntown\t32\nwas\t32\nwho\t32\n");
}

TEST(PunktTrainer, LaterTextRemovesAnAbbreviation) {
  PunktTrainer trainer;
  trainer.add(repeated("We saw the ab. near the sea today\n", 40));
  EXPECT_TRUE(trainer.finish().abbreviations.contains("ab"));
  trainer.add(repeated("We saw the ab near the sea today\n", 8));
  EXPECT_FALSE(trainer.finish().abbreviations.contains("ab"));
}

}  // namespace
}  // namespace bev
