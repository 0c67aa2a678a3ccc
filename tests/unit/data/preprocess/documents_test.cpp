#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/preprocess/text_reader.h"

namespace bev {
namespace {

using Texts = std::vector<std::string>;

Texts documents(std::string_view text, DocumentBreak kind) {
  Texts found;
  for_each_document(text, kind, [&](std::string_view d) { found.emplace_back(d); });
  return found;
}

TEST(Documents, Lines) {
  const auto lines = [](std::string_view text) { return documents(text, DocumentBreak::Line); };
  EXPECT_EQ(lines("one\ntwo\n"), (Texts{"one", "two"}));
  EXPECT_EQ(lines("one\ntwo"), (Texts{"one", "two"}));
  EXPECT_EQ(lines("one\r\ntwo\r\n"), (Texts{"one", "two"}));
  EXPECT_EQ(lines("\n\n one \n \t\n\r\ntwo\n\n"), (Texts{" one ", "two"}));
  EXPECT_EQ(lines("a\rb\n"), Texts{"a\rb"});
  EXPECT_EQ(lines("x"), Texts{"x"});
  EXPECT_EQ(lines(std::string_view("a\0b\n", 4)), Texts{std::string("a\0b", 3)});
  EXPECT_EQ(lines(""), Texts{});
  EXPECT_EQ(lines(" \n\t\r\n\f\v\n"), Texts{});
}

TEST(Documents, Paragraphs) {
  const auto paragraphs = [](std::string_view text) {
    return documents(text, DocumentBreak::Paragraph);
  };
  EXPECT_EQ(paragraphs("a\nb\n\nc\n"), (Texts{"a\nb", "c"}));
  EXPECT_EQ(paragraphs("a\nb\n\n\n \t\n\nc"), (Texts{"a\nb", "c"}));
  EXPECT_EQ(paragraphs("a\r\nb\r\n\r\nc\r\n"), (Texts{"a\r\nb", "c"}));
  EXPECT_EQ(paragraphs("\n\n\na"), Texts{"a"});
  EXPECT_EQ(paragraphs("a"), Texts{"a"});
  EXPECT_EQ(paragraphs(""), Texts{});
  EXPECT_EQ(paragraphs("\n \n"), Texts{});
}

TEST(Documents, WholeFiles) {
  const auto whole = [](std::string_view text) { return documents(text, DocumentBreak::File); };
  EXPECT_EQ(whole("a\n\nb\n"), Texts{"a\n\nb"});
  EXPECT_EQ(whole("a\n\n"), Texts{"a\n"});
  EXPECT_EQ(whole("\na"), Texts{"\na"});
  EXPECT_EQ(whole(" \n"), Texts{});
  EXPECT_EQ(whole(""), Texts{});
}

}  // namespace
}  // namespace bev
