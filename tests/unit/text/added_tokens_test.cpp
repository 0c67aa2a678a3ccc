#include "text/huggingface/added_tokens.h"

#include <gtest/gtest.h>

namespace bev {
namespace {

using Parts = std::vector<std::string>;

Parts parts_of(const std::vector<AddedToken>& tokens, std::string_view text) {
  std::vector<std::string> patterns;
  for (const AddedToken& token : tokens) patterns.push_back(token.content);
  Parts parts;
  split_at_tokens(
      TokenFinder(tokens, patterns), text,
      [&](std::string_view part, bool first) {
        parts.push_back((first ? "^" : "") + std::string(part));
      },
      [&](int32_t id) { parts.push_back("#" + std::to_string(id)); });
  return parts;
}

AddedToken token(int32_t id, std::string content) {
  AddedToken token;
  token.id = id;
  token.content = std::move(content);
  return token;
}

TEST(AddedTokens, LeftmostAndLongest) {
  const std::vector<AddedToken> tokens = {token(1, "<x>"), token(2, "<x>y"), token(3, "ab"),
                                          token(4, "b<")};
  EXPECT_EQ(parts_of(tokens, ""), Parts{});
  EXPECT_EQ(parts_of(tokens, "none"), Parts{"^none"});
  EXPECT_EQ(parts_of(tokens, "q<x>z<x>y"), (Parts{"^q", "#1", "z", "#2"}));
  EXPECT_EQ(parts_of(tokens, "<x><x>"), (Parts{"#1", "#1"}));
  EXPECT_EQ(parts_of(tokens, "ab<x>"), (Parts{"#3", "#1"}));
  EXPECT_EQ(parts_of(tokens, "b<x>"), (Parts{"#4", "x>"}));
  EXPECT_EQ(parts_of(tokens, "<<x"), Parts{"^<<x"});
  EXPECT_EQ(parts_of({}, "ab"), Parts{"^ab"});
  EXPECT_EQ(parts_of({token(1, "<x>")}, "a<<x><"), (Parts{"^a<", "#1", "<"}));
}

TEST(AddedTokens, SingleWord) {
  AddedToken word = token(1, "at");
  word.single_word = true;
  EXPECT_EQ(parts_of({word}, "at bat at. at_ \u00E9at at\u00E9 at"),
            (Parts{"#1", " bat ", "#1", ". at_ \u00E9at at\u00E9 ", "#1"}));
  EXPECT_EQ(parts_of({word, token(2, "tat")}, "atat"), (Parts{"^atat"}));
}

TEST(AddedTokens, Stripping) {
  AddedToken left = token(1, "<l>"), right = token(2, "<r>");
  left.strip_left = true;
  right.strip_right = true;
  EXPECT_EQ(parts_of({left, right}, "a \u00A0<l> b <r> \n c"),
            (Parts{"^a", "#1", " b ", "#2", "c"}));
  // What one has taken is gone for the other.
  EXPECT_EQ(parts_of({left, right}, "<r>  <l>"), (Parts{"#2", "#1"}));
  EXPECT_EQ(parts_of({left}, "  <l>"), Parts{"#1"});
}

}  // namespace
}  // namespace bev
