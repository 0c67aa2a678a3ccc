#include "text/huggingface/normalizer.h"

#include <gtest/gtest.h>

#include <map>

#include "support/expect_error.h"
#include "text/utf8.h"
#include "unit/text/random_text.h"

namespace bev {
namespace {

std::string of(const std::unique_ptr<Normalizer>& normalizer, std::string text) {
  normalizer->apply(text);
  return text;
}

BertNormalizing only(bool BertNormalizing::* what) {
  BertNormalizing none{
      .clean = false, .space_chinese = false, .strip_accents = false, .lower_case = false};
  none.*what = true;
  return none;
}

TEST(BertNormalizer, Cleans) {
  const auto clean = bert_normalizer(only(&BertNormalizing::clean));
  EXPECT_EQ(of(clean, std::string("a\0b\x01\uFFFD\x7F\u200Bc\u0085", 15)), "abc");
  EXPECT_EQ(of(clean, "a\tb\nc\rd\u00A0e\u3000f\u2028g"), "a b c d e f g");
  EXPECT_EQ(of(clean, "\u00E9A\u4E2D"), "\u00E9A\u4E2D");
  const auto dirty = bert_normalizer(only(&BertNormalizing::lower_case));
  EXPECT_EQ(of(dirty, "A\tB\u200B"), "a\tb\u200B");
}

TEST(BertNormalizer, PutsBlanksAroundIdeographs) {
  const auto space = bert_normalizer(only(&BertNormalizing::space_chinese));
  EXPECT_EQ(of(space, "a\u4E2D\u6587b"), "a \u4E2D  \u6587 b");
  EXPECT_EQ(of(space, "\u3400\u9FFF"), " \u3400  \u9FFF ");
  EXPECT_EQ(of(space, "\U0002B920"), " \U0002B920 ");
  EXPECT_EQ(of(space, "\U0002B820\u3042\uD55C"), "\U0002B820\u3042\uD55C");
}

TEST(BertNormalizer, StripsAccentsAndLowers) {
  const auto strip = bert_normalizer(only(&BertNormalizing::strip_accents));
  EXPECT_EQ(of(strip, "\u00C9a\u0301\u0489"), "Ea\u0489");  // an enclosing mark is no accent
  const auto all = bert_normalizer({});
  EXPECT_EQ(of(all, "\u00C9T\u00C9 \u0130\u03A3"), "ete i\u03C3");
  const auto lower = bert_normalizer(only(&BertNormalizing::lower_case));
  EXPECT_EQ(of(lower, "\u00C9A"), "\u00E9a");
}

TEST(FormNormalizer, IsTheForm) {
  EXPECT_EQ(of(form_normalizer(UnicodeForm::Composed), "e\u0301"), "\u00E9");
  EXPECT_EQ(of(form_normalizer(UnicodeForm::Decomposed), "\u00E9"), "e\u0301");
  EXPECT_EQ(of(form_normalizer(UnicodeForm::LowerCase), "\u00C9"), "\u00E9");
  // Enclosing and spacing marks too, and nothing is taken apart before.
  EXPECT_EQ(of(form_normalizer(UnicodeForm::WithoutMarks), "\u00E9e\u0301\u0489\u0903"), "\u00E9e");
}

TEST(StripNormalizer, TakesWhiteSpaceFromTheEnds) {
  const std::string text = " \u00A0\ta b\n\u3000";
  EXPECT_EQ(of(strip_normalizer(true, true), text), "a b");
  EXPECT_EQ(of(strip_normalizer(true, false), text), "a b\n\u3000");
  EXPECT_EQ(of(strip_normalizer(false, true), text), " \u00A0\ta b");
  EXPECT_EQ(of(strip_normalizer(true, true), " \n"), "");
  EXPECT_EQ(of(strip_normalizer(true, false), " \n"), "");
  EXPECT_EQ(of(strip_normalizer(false, true), ""), "");
}

TEST(ReplaceNormalizer, ReplacesFromTheLeft) {
  EXPECT_EQ(of(replace_normalizer("aa", "b"), "aaaxa"), "baxa");
  EXPECT_EQ(of(replace_normalizer(" ", "\u2581"), " a  b"), "\u2581a\u2581\u2581b");
  EXPECT_EQ(of(replace_normalizer("x", ""), "axbx"), "ab");
  EXPECT_EQ(of(replace_blanks_normalizer("_"), " a  b   c \n  "), " a_b_c \n_");
  EXPECT_EQ(of(prepend_normalizer("\u2581"), "a"), "\u2581a");
  EXPECT_EQ(of(prepend_normalizer("\u2581"), ""), "");
}

// A table of replacements in the format of SentencePiece. Each node of the trie has a block of 256
// units for itself.
class CharsmapBytes {
 public:
  explicit CharsmapBytes(const std::map<std::string, std::string>& replacements) {
    for (const auto& [from, to] : replacements) add(from, to);
  }

  std::string bytes() const {
    std::string result;
    append(static_cast<uint32_t>(units_.size() * 4), result);
    for (const uint32_t unit : units_) append(unit, result);
    return result + texts_;
  }

 private:
  static void append(uint32_t value, std::string& bytes) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xFF);
  }

  void add(const std::string& from, const std::string& to) {
    uint32_t node = 0;
    for (const char c : from) {
      const uint32_t base = block_of(node);
      node = base ^ static_cast<unsigned char>(c);
      units_[node] |= static_cast<unsigned char>(c);
    }
    const uint32_t base = block_of(node);
    units_[node] |= 1u << 8;
    units_[base] = 1u << 31 | static_cast<uint32_t>(texts_.size());
    texts_ += to + '\0';
  }

  uint32_t block_of(uint32_t node) {
    if (const auto known = blocks_.find(node); known != blocks_.end()) return known->second;
    const auto base = static_cast<uint32_t>(units_.size());
    units_.resize(units_.size() + 256);
    units_[node] |= (node ^ base) << 10;
    return blocks_[node] = base;
  }

  std::vector<uint32_t> units_ = std::vector<uint32_t>(256);
  std::map<uint32_t, uint32_t> blocks_;
  std::string texts_;
};

std::string mapped(const std::map<std::string, std::string>& replacements,
                   const std::string& text) {
  return of(charsmap_normalizer(CharsmapBytes(replacements).bytes(), "map"), text);
}

TEST(CharsmapNormalizer, ReplacesCharacters) {
  EXPECT_EQ(mapped({{"A", "a"}, {"\uFB01", "fi"}, {"\u00AD", ""}}, "AB\uFB01x\u00AD!"), "aBfix!");
  EXPECT_EQ(mapped({{"\r\n", " "}}, "a\r\nb\rc\n"), "a b\rc\n");
  EXPECT_EQ(mapped({{"\r\n", " "}, {"\r", "R"}}, "a\r\nb"), "aRb");
  EXPECT_EQ(mapped({{"a", "x"}}, ""), "");
}

// A cluster below six bytes is one; the shortest beginning in the table stands for all of it.
TEST(CharsmapNormalizer, SeesClusters) {
  const std::map<std::string, std::string> accents = {{"e\u0301", "\u00E9"}};
  EXPECT_EQ(mapped(accents, "e\u0301x"), "\u00E9x");
  EXPECT_EQ(mapped(accents, "e\u0301\u0323x"), "\u00E9x");  // five bytes: the second mark is gone
  EXPECT_EQ(mapped(accents, "e\u0301\u0323\u0323x"), "e\u0301\u0323\u0323x");  // seven: by
                                                                               // character
  EXPECT_EQ(mapped({{"e", "E"}}, "e\u0301x"), "Ex");
  EXPECT_EQ(mapped({{"\u0600", "p"}}, "\u0600ab"), "pb");  // prepended to the next
  EXPECT_EQ(mapped({{"a", "x"}}, "a\u0903b"), "xb");       // a spacing mark
  EXPECT_EQ(mapped({{"\u00A9", "c"}}, "\u00A9\u200D!"), "c!");
  EXPECT_EQ(mapped({{"\u00A9", "c"}}, "\u00A9\u200D\u00A9"), "c\u200Dc");  // one of seven bytes
  EXPECT_EQ(mapped({{"a", "x"}}, "a\u200B\u0301"), "x\u200B\u0301");       // a control stands alone
}

TEST(CharsmapNormalizer, HostileTables) {
  const auto refused = [](const std::string& bytes, const std::string& message) {
    test::expect_error(ErrorKind::Data, message, [&] { charsmap_normalizer(bytes, "map"); });
  };
  refused("", "map: 0 bytes are no table");
  refused(std::string("\4\0\0\0", 4), "the trie of 4 bytes does not fit the 0 bytes");
  refused(std::string("\0\0\0\0", 4), "does not fit");
  refused(std::string("\3\0\0\0abc", 7), "does not fit");
  refused(std::string("\4\0\0\0\0\0\0\0\xFF", 9), "the replacements are not valid UTF-8");
  // Units that lead anywhere are followed no further than the table.
  std::mt19937 random(8);
  for (int round = 0; round < 300; ++round) {
    std::string bytes = CharsmapBytes({{"ab", "x"}, {"e\u0301", "\u00E9"}}).bytes();
    for (int change = 0; change < 40; ++change)
      bytes[4 + random() % (bytes.size() - 12)] = static_cast<char>(random());
    try {
      const std::string text = of(charsmap_normalizer(bytes, "map"), "ab e\u0301 abab");
      EXPECT_EQ(valid_utf8_prefix(text), text.size());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind, ErrorKind::Data);
    }
  }
}

TEST(Base64, IsDecoded) {
  EXPECT_EQ(bytes_of_base64("", "b"), "");
  EXPECT_EQ(bytes_of_base64("YQ==", "b"), "a");
  EXPECT_EQ(bytes_of_base64("YWI=", "b"), "ab");
  EXPECT_EQ(bytes_of_base64("YWJj", "b"), "abc");
  EXPECT_EQ(bytes_of_base64("/+8A", "b"), std::string("\xFF\xEF\0", 3));
  for (const char* bad : {"YQ", "Y===", "Y!==", "===="})
    test::expect_error(ErrorKind::Data, "b: ", [&] { bytes_of_base64(bad, "b"); });
}

TEST(Normalizers, KeepTextsValid) {
  const auto bert = bert_normalizer({}), strip = strip_normalizer(true, true);
  const auto marks = form_normalizer(UnicodeForm::WithoutMarks);
  std::mt19937 random(6);
  for (int round = 0; round < 500; ++round) {
    const std::string text = test::random_text(random, 30);
    for (const auto* normalizer : {&bert, &marks, &strip}) {
      const std::string result = of(*normalizer, text);
      ASSERT_EQ(valid_utf8_prefix(result), result.size());
    }
  }
}

}  // namespace
}  // namespace bev
