#include "text/tokenizer_files.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/json.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

// transformers takes a vocabulary for lower case where nothing says otherwise.
TEST(TokenizerFiles, AVocabularyOfBertSaysItsCase) {
  const test::TemporaryDirectory dir;
  std::ofstream(dir / "vocab.txt") << "[PAD]\n";
  for (const bool is_cased : {false, true}) {
    TokenizerSpec spec;
    spec.kind = is_cased ? TokenizerKind::BertCased : TokenizerKind::BertLower;
    EXPECT_TRUE(tokenizer_files(spec).empty());
    spec.vocab_file = (dir / "vocab.txt").string();
    const std::vector<TokenizerFile> files = tokenizer_files(spec);
    ASSERT_EQ(files.size(), 2U);
    EXPECT_EQ(files[0].name, "vocab.txt");
    EXPECT_EQ(files[1].name, "tokenizer_config.json");
    EXPECT_TRUE(files[1].path.empty());
    const Json config = parse_json(files[1].text, "config");
    EXPECT_EQ(config["do_lower_case"], !is_cased);
    EXPECT_EQ(config["mask_token"], "[MASK]");
  }
  // One that is there is kept.
  std::ofstream(dir / "tokenizer_config.json") << "{}";
  TokenizerSpec spec;
  spec.kind = TokenizerKind::BertCased;
  spec.vocab_file = (dir / "vocab.txt").string();
  EXPECT_EQ(tokenizer_files(spec).at(1).path, dir / "tokenizer_config.json");
}

// Fails when the sentinels of a T5 are lost in a model folder, or others are taken for them.
TEST(TokenizerFiles, ExtraIdsOfAVocabularyOfBert) {
  const test::TemporaryDirectory dir;
  std::ofstream(dir / "vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
  EXPECT_EQ(extra_ids_in(dir.path()), 0);
  TokenizerSpec spec;
  spec.kind = TokenizerKind::BertLower;
  spec.vocab_file = (dir / "vocab.txt").string();
  const auto write = [&] {
    std::filesystem::remove(dir / "tokenizer_config.json");
    const std::string text = tokenizer_files(spec).at(1).text;
    std::ofstream(dir / "tokenizer_config.json") << text;
  };
  write();
  EXPECT_EQ(detect_tokenizer(dir.path().string()).extra_ids, 0);
  spec.extra_ids = 3;
  write();
  const TokenizerSpec found = detect_tokenizer(dir.path().string());
  EXPECT_EQ(found.extra_ids, 3);
  EXPECT_EQ(open_tokenizer(found)->token_name(8), "<extra_id_2>");
  // Two other tokens come first.
  spec.classic = true;
  write();
  EXPECT_EQ(read_json(dir / "tokenizer_config.json")["additional_special_tokens"].size(), 5U);
  EXPECT_EQ(extra_ids_in(dir.path()), 0);
}

}  // namespace
}  // namespace bev
