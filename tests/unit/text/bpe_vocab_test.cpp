#include "text/bpe/bpe_vocab.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "unit/text/tiny_bpe.h"

namespace bev {
namespace {

using test::expect_error;
using test::tiny_files;
using test::TinyFiles;

const test::TinyMerges kMerges = {{"h", "e"}, {" ", "t"}, {" t", "he"}};

BpeVocab load(const TinyFiles& files) {
  return {NamedText{"v.json", files.vocab}, NamedText{"m.txt", files.merges}};
}

void refused(const TinyFiles& files, const std::string& message) {
  expect_error(ErrorKind::Data, message, [&] { load(files); });
}

TEST(BpeVocab, TokensBytesAndMerges) {
  const BpeVocab vocab = load(tiny_files(kMerges));
  EXPECT_EQ(vocab.size(), 260);
  EXPECT_EQ(vocab.bytes(256), "he");
  EXPECT_EQ(vocab.bytes(258), " the");
  EXPECT_EQ(vocab.end_of_text(), 259);
  for (int32_t byte = 0; byte < 256; ++byte)
    EXPECT_EQ(vocab.id_of_byte(static_cast<unsigned char>(byte)), byte);
  EXPECT_EQ(vocab.merges().find('h', 'e'), make_merge(0, 256));
  EXPECT_EQ(vocab.merges().find(257, 256), make_merge(2, 258));
  EXPECT_EQ(vocab.merges().find('e', 'h'), kNoMerge);
}

TEST(BpeVocab, OfFiles) {
  const test::TemporaryDirectory dir;
  const TinyFiles files = tiny_files(kMerges);
  for (const auto& [name, text] :
       {std::pair("vocab.json", files.vocab), {"merges.txt", files.merges}}) {
    AtomicFile file(dir / name);
    file.write(std::string_view(text));
    file.commit();
  }
  EXPECT_EQ(BpeVocab::read(dir / "vocab.json", dir / "merges.txt").size(), 260);
  expect_error(ErrorKind::Data, "absent.txt",
               [&] { BpeVocab::read(dir / "vocab.json", dir / "absent.txt"); });
}

// A pair of '#' is a merge like any other; only the first line may name a version.
TEST(BpeVocab, LinesOfMerges) {
  TinyFiles files = tiny_files({{"#", "#"}, {"#", "version"}});
  refused(files, "m.txt:3: the right token \"version\" is not in the vocabulary");
  files = tiny_files({{"#", "#"}});
  files.merges = "# #";
  EXPECT_EQ(load(files).merges().find('#', '#'), make_merge(0, 256));
  files.merges = "#version: 0.2\r\n# #\r\n";
  EXPECT_EQ(load(files).merges().find('#', '#'), make_merge(0, 256));
  files.merges = "";
  EXPECT_EQ(load(files).merges().find('#', '#'), kNoMerge);
}

TEST(BpeVocab, WithoutAnEndOfText) {
  Json vocab = Json::parse(tiny_files({}).vocab);
  vocab.erase("<|endoftext|>");
  EXPECT_EQ(load({vocab.dump(), ""}).end_of_text(), std::nullopt);
}

TEST(BpeVocab, TwoWaysToOneToken) {
  const BpeVocab vocab = load(tiny_files({{"a", "b"}, {"b", "c"}, {"ab", "c"}, {"a", "bc"}}));
  EXPECT_EQ(token_of(vocab.merges().find(256, 'c')), 258);
  EXPECT_EQ(token_of(vocab.merges().find('a', 257)), 258);
}

TEST(BpeVocab, HostileMerges) {
  const TinyFiles good = tiny_files(kMerges);
  const auto with = [&](const std::string& line) {
    return TinyFiles{good.vocab, good.merges + line};
  };
  refused(with("h  e\n"), "m.txt:5: \"h  e\" is not two tokens with a blank between them");
  refused(with("he\n"), "m.txt:5: \"he\" is not two tokens");
  refused(with("h e r\n"), "m.txt:5: \"h e r\" is not two tokens");
  refused(with(" he\n"), "m.txt:5: \" he\" is not two tokens");
  refused(with("he \n"), "m.txt:5: \"he \" is not two tokens");
  refused(with("\n"), "m.txt:5: \"\" is not two tokens");
  refused(with("#version: 0.2\n"), "m.txt:5: the left token \"#version:\" is not in the vocab");
  refused(with("h xy\n"), "m.txt:5: the right token \"xy\" is not in the vocabulary");
  refused(with("h h\n"), "m.txt:5: the merged token \"hh\" is not in the vocabulary");
  refused(with("h e\n"), "m.txt:5: \"h\" and \"e\" were merged on an earlier line");
  refused(with("\xFF\xFE \xFF\n"), "m.txt:5: the left token");
  refused(with(std::string("h\0 e\n", 5)), "m.txt:5: the left token");
  refused({good.vocab, std::string(size_t{1} << 22, '\n')}, "at most 4194304 are read");
}

TEST(BpeVocab, HostileVocabularies) {
  const TinyFiles good = tiny_files(kMerges);
  const auto with = [&](const std::string& name, const Json& id) {
    Json vocab = Json::parse(good.vocab);
    vocab[name] = id;
    return TinyFiles{vocab.dump(), good.merges};
  };
  refused({"[]", ""}, "v.json: not an object of tokens and ids");
  refused({"7", ""}, "v.json: not an object");
  refused({"{}", ""}, "v.json: there is no token for byte 0");
  refused({"{\"a\": 0, \"a\": 1}", ""}, "v.json: the name \"a\" stands twice");
  refused({"{\"a\": {}}", ""}, "v.json: arrays and objects are nested deeper than 1");
  refused({"{\"a\": 0", ""}, "v.json: not valid JSON");
  refused(with("q", 0), "both have id 0");
  refused(with("new", 261),
          "the id of token \"new\" is \"261\"; the ids of 261 tokens are 0 to 260");
  refused(with("new", -1), "is \"-1\"");
  refused(with("new", 1.5), "is \"1.5\"");
  refused(with("new", "260"), "the id of token \"new\"");
  refused(with("new", nullptr), "is \"null\"");
  refused(with("new", UINT64_MAX), "is \"18446744073709551615\"");
  refused(with("a b", 260), "token \"a b\" (id 260) is empty or has characters");
  refused(with("\u4E2D", 260), "token \"\\u4e2d\" (id 260)");
  refused(with("", 260), "token \"\" (id 260) is empty");
  Json vocab = Json::parse(good.vocab);
  vocab.erase("\u0120");
  vocab["new"] = 32;
  refused({vocab.dump(), ""}, "there is no token for byte 32, \"\\u0120\"");
}

}  // namespace
}  // namespace bev
