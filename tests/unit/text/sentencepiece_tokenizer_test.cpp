#include "text/sentencepiece/sentencepiece_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include "base/file.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "text/open_tokenizer.h"
#include "text/sentencepiece/sentencepiece_file.h"
#include "text/sentencepiece/sentencepiece_trainer.h"
#include "unit/text/encoded.h"
#include "unit/text/tiny_sentencepiece.h"

namespace bev {
namespace {

using test::expect_error;
using test::piece_field;
using test::tiny_model;
using Ids = std::vector<int32_t>;

SentencePieceTokenizer tiny(SentencePieceRules rules = SentencePieceRules::Plain,
                            int64_t extra_ids = 0, std::string_view more_pieces = "") {
  return {tiny_model(more_pieces), "tiny.model", rules, extra_ids};
}

std::string training_text() {
  std::mt19937 draw(1);
  std::string text;
  for (int i = 0; i < 400; ++i) {
    for (int word = 0; word < 8; ++word) {
      constexpr std::array<std::string_view, 8> kParts{"ba", "no", "ti", "ra",
                                                       "lu", "me", "s",  "ing"};
      for (size_t part = 0; part < 1 + draw() % 3; ++part) text += kParts[draw() % kParts.size()];
      text += ' ';
    }
    text += ".\n";
  }
  return text;
}

std::string trained_model(SentencePieceStyle style, int64_t vocab,
                          const std::vector<std::string>& specials = {}) {
  const std::string text = training_text();
  const std::vector<std::string_view> texts{text};
  return train_sentencepiece(texts, {.style = style, .vocab = vocab, .specials = specials}).model;
}

TEST(SentencePiece, PiecesRolesAndNames) {
  SentencePieceTokenizer tokenizer = tiny();
  EXPECT_EQ(tokenizer.vocab_size(), 7);
  EXPECT_EQ(tokenizer.eod_id(), 2);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Unknown), 0);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Begin), 1);
  EXPECT_EQ(tokenizer.role_id(TokenRole::End), 2);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Pad), std::nullopt);
  EXPECT_EQ(tokenizer.token_name(4), "a");
  EXPECT_EQ(encoded(tokenizer, "ab a"), (Ids{3, 4, 5, 3, 4}));
  EXPECT_EQ(encoded(tokenizer, ""), Ids{});
  // Neighbouring characters without a piece are one unknown piece.
  EXPECT_EQ(encoded(tokenizer, "axya"), (Ids{3, 4, 0, 4}));
  EXPECT_EQ(tokenizer.pieces("axya"), (std::vector<std::string>{"\xE2\x96\x81", "a", "xy", "a"}));
  EXPECT_EQ(tokenizer.decode(Ids{3, 4, 5, 3, 4}), "ab a");
  // Control pieces have no text; what is outside the vocabulary is left out.
  EXPECT_EQ(tokenizer.decode(Ids{1, 4, -5, 7, 2}), "a");
  EXPECT_EQ(tokenizer.decode(Ids{}), "");
}

TEST(SentencePiece, NearlyEqualDivisionsAreDecidedInFloat32) {
  // II+I and I+II have the same sum but for rounding; far into a text they are equal.
  const std::string more = piece_field("II", -4.1f, 1);
  SentencePieceTokenizer tokenizer = tiny(SentencePieceRules::Plain, 0, more);
  const int32_t one = 6, two = 7;
  std::string text;
  Ids wanted{3};
  for (int i = 0; i < 300; ++i) {
    text += "a";
    wanted.push_back(4);
  }
  text += "III";
  const Ids ids = encoded(tokenizer, text);
  wanted.insert(wanted.end(), {one, two});
  const auto sum = [](std::initializer_list<float> scores) {
    float all = 0;
    for (int i = 0; i < 301; ++i) all += i == 0 ? -2.0f : -3.0f;
    for (const float score : scores) all += score;
    return all;
  };
  // The division whose last piece begins first wins unless the other is larger.
  if (sum({-4.1f, -3.0f}) > sum({-3.0f, -4.1f})) wanted = Ids(wanted.begin(), wanted.end() - 2);
  if (wanted.size() == 301) wanted.insert(wanted.end(), {two, one});
  EXPECT_EQ(ids, wanted);
}

// The library looks for it by name, and finds none here.
TEST(SentencePiece, TheUnknownPieceIsKnownByItsType) {
  const std::string model = piece_field("<what>", 0, 2) + piece_field("<unk>", -1, 1) +
                            piece_field("a", -1, 1) +
                            test::bytes_field(2, test::number_field(3, 1));
  SentencePieceTokenizer tokenizer(model, "m", SentencePieceRules::Plain, 0);
  std::vector<int32_t> ids;
  tokenizer.encode("aza", ids);
  for (const int32_t id : ids) EXPECT_TRUE(id == 0 || id == 2) << id;
  EXPECT_NE(std::find(ids.begin(), ids.end(), 0), ids.end());
  EXPECT_EQ(tokenizer.role_id(TokenRole::Unknown), 0);
}

TEST(SentencePiece, ClassicMarksStandBehindThePieces) {
  SentencePieceTokenizer tokenizer = tiny(SentencePieceRules::Marked, 2);
  // <CLS> <SEP> <EOD> <MASK> <PAD>, then extra ids: the model has <s> and </s>.
  EXPECT_EQ(tokenizer.vocab_size(), 7 + 5 + 2);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Classify), 7);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Separate), 8);
  EXPECT_EQ(tokenizer.eod_id(), 9);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Mask), 10);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Pad), 11);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Begin), 1);
  EXPECT_EQ(tokenizer.role_id(TokenRole::End), 2);
  EXPECT_EQ(tokenizer.token_name(12), "<extra_id_0>");
  EXPECT_EQ(encoded(tokenizer, "a<EOD>b</s><extra_id_1>"), (Ids{3, 4, 9, 3, 5, 2, 13}));
  EXPECT_EQ(tokenizer.decode(Ids{3, 4, 9, 3, 5}), "a <EOD> b");
  EXPECT_EQ(tokenizer.decode(Ids{3, 4, 9, 3, 5}, SpecialIds::LeaveOut), "a b");
}

TEST(SentencePiece, ClassicLlamaBeginsWithTheBeginning) {
  SentencePieceTokenizer tokenizer = tiny(SentencePieceRules::BeginFirst);
  EXPECT_EQ(encoded(tokenizer, "a"), (Ids{1, 3, 4}));
  EXPECT_EQ(encoded(tokenizer, ""), Ids{1});
  Ids begun;
  tokenizer.encode_begun("a", begun);
  EXPECT_EQ(begun, (Ids{1, 3, 4}));
  EXPECT_EQ(tokenizer.vocab_size(), 7);
}

TEST(SentencePiece, TheKindsDifferOnlyUnderTheRulesOf2023) {
  const test::TemporaryDirectory folder;
  {
    AtomicFile file(folder / "tiny.model");
    file.write(std::string_view(tiny_model()));
    file.commit();
  }
  const auto ids = [&](TokenizerKind kind, bool classic) {
    TokenizerSpec spec;
    spec.kind = kind;
    spec.model = (folder / "tiny.model").string();
    spec.classic = classic;
    return encoded(*open_tokenizer(spec), "a<EOD>");
  };
  const Ids plain = ids(TokenizerKind::SentencePiece, false);
  EXPECT_EQ(plain, (Ids{3, 4, 0}));
  EXPECT_EQ(ids(TokenizerKind::GptSentencePiece, false), plain);
  EXPECT_EQ(ids(TokenizerKind::Llama2, false), plain);
  EXPECT_EQ(ids(TokenizerKind::GptSentencePiece, true), plain);
  EXPECT_EQ(ids(TokenizerKind::Llama2, true), (Ids{1, 3, 4, 0}));
  EXPECT_EQ(ids(TokenizerKind::SentencePiece, true), (Ids{3, 4, 9}));
}

TEST(SentencePiece, TextsComeBack) {
  for (const auto style : {SentencePieceStyle::Bpe, SentencePieceStyle::Unigram}) {
    SentencePieceTokenizer tokenizer(
        trained_model(style, style == SentencePieceStyle::Bpe ? 340 : 60), "trained",
        SentencePieceRules::Plain, 0);
    const std::unique_ptr<Tokenizer> clone = tokenizer.clone();
    for (const std::string_view text : {"banora ting.", "melu", "ba ba ba"}) {
      const Ids ids = encoded(tokenizer, text);
      EXPECT_EQ(tokenizer.decode(ids), text);
      EXPECT_EQ(encoded(*clone, text), ids);
    }
  }
}

TEST(SentencePiece, BytesThatAreNoCharacterAreReplacedOneByOne) {
  SentencePieceTokenizer tokenizer(trained_model(SentencePieceStyle::Bpe, 340), "trained",
                                   SentencePieceRules::Plain, 0);
  const auto byte = [](int value) { return static_cast<int32_t>(3 + value); };
  EXPECT_EQ(tokenizer.token_name(byte(0x41)), "<0x41>");
  EXPECT_EQ(tokenizer.decode(Ids{byte(0xE2), byte(0x82), byte(0xAC)}), "\xE2\x82\xAC");
  EXPECT_EQ(tokenizer.decode(Ids{byte(0xE2), byte(0x82)}), "\xEF\xBF\xBD\xEF\xBF\xBD");
  // What is no UTF-8 in a text is replaced before it is encoded.
  EXPECT_EQ(encoded(tokenizer, "\xFF"), encoded(tokenizer, "\xEF\xBF\xBD"));
  EXPECT_EQ(tokenizer.decode(encoded(tokenizer, "\xF0\x9F\x98\x80 \n")), "\xF0\x9F\x98\x80 \n");
}

TEST(SentencePiece, SpecialPiecesAreNeverCut) {
  SentencePieceTokenizer tokenizer(trained_model(SentencePieceStyle::Unigram, 60, {"<turn>"}),
                                   "trained", SentencePieceRules::Plain, 0);
  const std::vector<std::string> pieces = tokenizer.pieces("ba<turn>ba");
  EXPECT_NE(std::find(pieces.begin(), pieces.end(), "<turn>"), pieces.end());
}

TEST(SentencePiece, ATrainingThatTheLibraryRefusesIsAnError) {
  expect_error(ErrorKind::Usage, "cannot train",
               [] { trained_model(SentencePieceStyle::Unigram, 100000); });
  expect_error(ErrorKind::Usage, "cannot train",
               [] { trained_model(SentencePieceStyle::Bpe, 50); });
  expect_error(ErrorKind::Usage, "without commas",
               [] { trained_model(SentencePieceStyle::Unigram, 60, {"a,b"}); });
}

TEST(SentencePiece, TheVocabularyAsText) {
  EXPECT_TRUE(sentencepiece_vocab(tiny_model()).starts_with("<unk>\t0\n<s>\t0\n"));
}

class HostileModel : public ::testing::Test {
 protected:
  static void refused(const std::string& model, const std::string& why) {
    expect_error(ErrorKind::Data, why, [&] {
      const SentencePieceTokenizer tokenizer(model, "bad.model", SentencePieceRules::Plain, 0);
    });
    expect_error(ErrorKind::Data, "bad.model", [&] {
      const SentencePieceTokenizer tokenizer(model, "bad.model", SentencePieceRules::Plain, 0);
    });
  }
};

TEST_F(HostileModel, Pieces) {
  refused("", "no pieces");
  refused("hello, this is text", "");
  refused(tiny_model(piece_field("", 0, 1)), "is empty");
  refused(tiny_model(piece_field("a", 0, 1)), "twice");
  refused(tiny_model(piece_field("\xFF", 0, 1)), "not UTF-8");
  refused(tiny_model(piece_field(std::string_view("a\0", 2), 0, 1)), "zero byte");
  refused(tiny_model(piece_field("x", std::numeric_limits<float>::quiet_NaN(), 1)), "not finite");
  refused(tiny_model(piece_field("x", std::numeric_limits<float>::infinity(), 1)), "not finite");
  refused(tiny_model(piece_field("x", 0, 7)), "type 7");
  refused(tiny_model(piece_field("x", 0, 6)), "to be a byte");
  refused(tiny_model(piece_field("x", 0, 2)), "2 pieces stand for what is unknown");
  refused(tiny_model("", 5), "models of type 5");
  refused(tiny_model() + test::bytes_field(2, ""), "two settings");
  refused(tiny_model() + test::bytes_field(3, ""), "twice");
}

TEST_F(HostileModel, EveryPrefixAndEveryBrokenByte) {
  const std::string model = trained_model(SentencePieceStyle::Unigram, 60);
  const auto survives = [](const std::string& bytes) {
    try {
      SentencePieceTokenizer tokenizer(bytes, "bad.model", SentencePieceRules::Plain, 0);
      const Ids ids = encoded(tokenizer, "ba no \xEF\xBC\xA1 xyz");
      tokenizer.decode(ids);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind, ErrorKind::Data) << error.what();
    }
  };
  for (size_t size = 0; size < model.size(); size += 1 + model.size() / 40)
    survives(model.substr(0, size));
  std::mt19937 draw(1);
  for (int i = 0; i < 60; ++i) {
    std::string broken = model;
    // Half of them among the pieces, half in the table of the normalizer.
    const size_t at = i % 2 == 0 ? draw() % 1500 : draw() % broken.size();
    broken[at] = static_cast<char>(draw());
    survives(broken);
  }
}

// A table with one rule: the byte 'x' becomes the text at `value`.
std::string one_rule(uint32_t value, uint32_t offset = 256) {
  std::string units;
  std::vector<uint32_t> trie(512, 1u << 31);
  trie[0] = offset << 10;                                     // the root
  trie[256 ^ 'x'] = 'x' | 1u << 8 | (256 ^ 'x' ^ 257) << 10;  // a rule ends here: its leaf is 257
  trie[257] = value | 1u << 31;
  for (const uint32_t unit : trie) units += test::raw(unit);
  return test::raw(static_cast<uint32_t>(units.size())) + units + std::string("ab\0", 3);
}

TEST(Charsmap, FollowsEveryRule) {
  EXPECT_EQ(charsmap_fault(one_rule(0)), "");
  EXPECT_EQ(charsmap_fault(one_rule(1)), "");
  EXPECT_NE(charsmap_fault(one_rule(3)).find("no text"), std::string::npos);
  EXPECT_NE(charsmap_fault(one_rule(0, 4096)).find("outside"), std::string::npos);
  EXPECT_NE(charsmap_fault(""), "");
  EXPECT_NE(charsmap_fault("abc"), "");
  EXPECT_NE(charsmap_fault(one_rule(0).substr(0, 1000)), "");
  std::string open = one_rule(0);
  open.back() = 'c';
  EXPECT_NE(charsmap_fault(open).find("no end"), std::string::npos);
  // The rule is used.
  SentencePieceTokenizer tokenizer(tiny_model("", 1, one_rule(0)), "tiny.model",
                                   SentencePieceRules::Plain, 0);
  EXPECT_EQ(encoded(tokenizer, "x"), (Ids{3, 4, 5}));
}

TEST(Charsmap, LoopsAndDeepRulesAreFound) {
  std::vector<uint32_t> trie(512, 1u << 31);
  trie[0] = 256u << 10;
  trie[256 ^ 'x'] = 'x' | ('x' << 10);  // its children are where it is itself
  std::string units;
  for (const uint32_t unit : trie) units += test::raw(unit);
  const std::string loop = test::raw(static_cast<uint32_t>(units.size())) + units + '\0';
  EXPECT_NE(charsmap_fault(loop).find("loop"), std::string::npos);
}

}  // namespace
}  // namespace bev
