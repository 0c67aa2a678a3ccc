#include <gtest/gtest.h>

#include <map>
#include <random>

#include "support/expect_error.h"
#include "text/bpe/bpe_vocab.h"
#include "text/huggingface/token_model.h"

namespace bev {
namespace {

using Ids = std::vector<int32_t>;

TokenNames names_of(const std::vector<std::string>& names) {
  TokenNames result;
  for (const std::string& name : names) result.add(name, result.size(), "test", "names");
  return result;
}

Ids encoded(const TokenModel& model, std::string_view piece) {
  Ids ids{77};  // what was there goes
  model.encode(piece, ids);
  return ids;
}

TEST(TokenNames, BothDirections) {
  TokenNames names = names_of({"a", "b"});
  names.add("c", 5, "f", "p");
  EXPECT_EQ(names.find("b"), 1);
  EXPECT_EQ(names.find("x"), std::nullopt);
  EXPECT_EQ(*names.name(5), "c");
  for (const int32_t none : {-1, 2, 4, 6}) EXPECT_EQ(names.name(none), nullptr);
  EXPECT_EQ(names.size(), 6);
  EXPECT_EQ(names.count(), 3);
  const auto refused = [&](const std::string& name, int64_t id, const std::string& message) {
    test::expect_error(ErrorKind::Data, message, [&] { names.add(name, id, "f", "p"); });
  };
  refused("a", 9, "f: p: the token \"a\" is there twice, with ids 0 and 9");
  refused("d", 5, "f: p: tokens \"c\" and \"d\" both have id 5");
  refused("e", -1, "the id of token \"e\" is -1");
  refused("f", TokenNames::kLimit, "ids are 0 to 4194303");
}

TEST(ByteTrie, FindsBeginnings) {
  const ByteTrie trie({{"a", 1}, {"abc", 2}, {"\xFF", 3}, {"b", 0}});
  const auto found = [&](std::string_view text) {
    std::vector<std::pair<size_t, int32_t>> all;
    trie.beginnings(text, [&](size_t length, int32_t value) { all.emplace_back(length, value); });
    return all;
  };
  using Found = std::vector<std::pair<size_t, int32_t>>;
  EXPECT_EQ(found("abcd"), (Found{{1, 1}, {3, 2}}));
  EXPECT_EQ(found("ab"), (Found{{1, 1}}));
  EXPECT_EQ(found("\xFFz"), (Found{{1, 3}}));
  EXPECT_EQ(found("b"), (Found{{1, 0}}));
  EXPECT_TRUE(found("").empty());
  EXPECT_TRUE(found("c").empty());
  EXPECT_TRUE(trie.begins('a'));
  EXPECT_FALSE(trie.begins('c'));
  EXPECT_TRUE(ByteTrie().empty());
}

// Against a map, with strings that share beginnings and have many children.
TEST(ByteTrie, OfRandomStrings) {
  std::mt19937 random(2);
  std::map<std::string, int32_t> all;
  for (int32_t i = 0; i < 600; ++i) {
    std::string text(1 + random() % 4, '\0');
    for (char& c : text) c = static_cast<char>(random() % (random() % 2 == 0 ? 3 : 256));
    all.emplace(text, i);
  }
  const ByteTrie trie({all.begin(), all.end()});
  for (int round = 0; round < 3000; ++round) {
    std::string text(random() % 6, '\0');
    for (char& c : text) c = static_cast<char>(random() % (random() % 2 == 0 ? 3 : 256));
    std::vector<int32_t> expected, found;
    for (size_t length = 1; length <= text.size(); ++length)
      if (const auto known = all.find(text.substr(0, length)); known != all.end())
        expected.push_back(known->second);
    trie.beginnings(text, [&](size_t, int32_t value) { found.push_back(value); });
    ASSERT_EQ(found, expected);
  }
}

class BpeModelTest : public testing::Test {
 protected:
  // <unk> 0, a 1, b 2, ab 3, and the bytes of U+00E9 4 and 5.
  static BpeModel model(BpeModel::Options options) {
    TokenNames names = names_of({"<unk>", "a", "b", "ab", "<0xC3>", "<0xA9>", "aba"});
    MergeTable merges(2);
    merges.insert(1, 2, make_merge(0, 3));
    return {std::move(names), std::move(merges), options};
  }
};

TEST_F(BpeModelTest, Unknown) {
  EXPECT_EQ(encoded(model({}), "axxb"), (Ids{3}));  // what is left out leaves no gap
  EXPECT_EQ(encoded(model({.unknown = 0}), "axxb"), (Ids{1, 0, 0, 2}));
  EXPECT_EQ(encoded(model({.unknown = 0, .fuse_unknown = true}), "axxbx"), (Ids{1, 0, 2, 0}));
  EXPECT_EQ(encoded(model({.unknown = 0, .fuse_unknown = true}), "xx"), (Ids{0}));
}

TEST_F(BpeModelTest, ByteFallback) {
  const BpeModel fallback = model({.unknown = 0, .byte_fallback = true});
  EXPECT_EQ(encoded(fallback, "a\u00E9b"), (Ids{1, 4, 5, 2}));
  EXPECT_EQ(encoded(fallback, "a\u00EAb"), (Ids{1, 0, 2}));  // one of its bytes is missing
  EXPECT_EQ(encoded(fallback, "x\u00E9b"), (Ids{4, 5, 0, 2}));
}

TEST_F(BpeModelTest, IgnoreMerges) {
  EXPECT_EQ(encoded(model({}), "aba"), (Ids{3, 1}));
  EXPECT_EQ(encoded(model({.ignore_merges = true}), "aba"), (Ids{6}));
  EXPECT_EQ(encoded(model({.ignore_merges = true}), "abab"), (Ids{3, 3}));
}

TEST_F(BpeModelTest, BytesAsCharacters) {
  TokenNames names =
      names_of({"a", name_of_bytes(" "), name_of_bytes(" a"), name_of_bytes("\xC3")});
  MergeTable merges(1);
  merges.insert(1, 0, make_merge(0, 2));
  const BpeModel bytes(std::move(names), std::move(merges), {.unit = BpeModel::Unit::Byte});
  EXPECT_EQ(encoded(bytes, " a"), Ids{2});
  EXPECT_EQ(encoded(bytes, "a\u00E9 a"), (Ids{0, 3, 2}));  // without A9
}

TEST(UnigramModel, TakesTheBest) {
  const UnigramModel model(names_of({"<unk>", "a", "b", "ab", "abc"}), {0, -1, -1, -3, -9},
                           {.unknown = 0, .byte_fallback = false}, "test");
  EXPECT_EQ(encoded(model, "ab"), (Ids{1, 2}));
  EXPECT_EQ(encoded(model, "abc"), Ids{4});           // c alone is unknown: -19
  EXPECT_EQ(encoded(model, "axyb"), (Ids{1, 0, 2}));  // neighbours are one unknown
}

TEST(UnigramModel, BytesAndErrors) {
  const UnigramModel bytes(names_of({"<unk>", "a", "<0xC3>", "<0xA9>"}), {0, -1, -2, -2},
                           {.unknown = 0, .byte_fallback = true}, "test");
  EXPECT_EQ(encoded(bytes, "a\u00E9a"), (Ids{1, 2, 3, 1}));
  EXPECT_EQ(encoded(bytes, "a\u00E9\u00EA"), (Ids{1, 0}));
  const UnigramModel none(names_of({"a"}), {-1}, {}, "f.json: model.vocab");
  test::expect_error(ErrorKind::Data, "f.json: model.vocab: the vocabulary has no token for \"x\"",
                     [&] { encoded(none, "ax"); });
}

// Against all ways to write a text.
TEST(UnigramModel, AgainstAllDivisions) {
  std::mt19937 random(4);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> tokens{"<unk>", "a", "b"};
    std::vector<double> scores{0.0};
    for (const char* more : {"aa", "ab", "ba", "bb", "aab", "abb", "baba"})
      if (random() % 2 == 0) tokens.emplace_back(more);
    while (scores.size() < tokens.size())
      scores.push_back(-static_cast<double>(random() % 4096) / 64);
    const UnigramModel model(names_of(tokens), scores, {.unknown = 0, .byte_fallback = false}, "t");
    std::string text;
    for (size_t i = 1 + random() % 8; i > 0; --i) text += "ab"[random() % 2];
    double best = -1e9;
    const auto divide = [&](auto&& self, size_t at, double sum) -> void {
      if (at == text.size()) best = std::max(best, sum);
      for (size_t i = 1; i < tokens.size(); ++i)
        if (text.compare(at, tokens[i].size(), tokens[i]) == 0 && at < text.size())
          self(self, at + tokens[i].size(), sum + scores[i]);
    };
    divide(divide, 0, 0.0);
    double ours = 0;
    std::string spelled;
    for (const int32_t id : encoded(model, text)) {
      ours += scores[static_cast<size_t>(id)];
      spelled += tokens[static_cast<size_t>(id)];
    }
    ASSERT_EQ(spelled, text);
    ASSERT_EQ(ours, best);
  }
}

TEST(WordPieceModel, TheLongestFirst) {
  const WordPieceModel model(
      names_of({"[UNK]", "un", "una", "##a", "##ff", "##aff", "##able", "\u00E9"}),
      {.unknown = 0, .continuation = "##", .longest_word = 9});
  EXPECT_EQ(encoded(model, "unaffable"), (Ids{2, 4, 6}));
  EXPECT_EQ(encoded(model, "un"), Ids{1});
  EXPECT_EQ(encoded(model, "unx"), Ids{0});   // nothing of what was found stays
  EXPECT_EQ(encoded(model, "able"), Ids{0});  // a continuation begins no word
  EXPECT_EQ(encoded(model, "unaaaaaaa"), (Ids{2, 3, 3, 3, 3, 3, 3}));
  EXPECT_EQ(encoded(model, "unaaaaaaaa"), Ids{0});         // ten characters
  EXPECT_EQ(encoded(model, "\u00E9aaaaaaaa").size(), 9u);  // characters, not bytes
}

}  // namespace
}  // namespace bev
