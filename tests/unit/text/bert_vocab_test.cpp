#include "text/huggingface/bert_vocab.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "text/open_tokenizer.h"
#include "unit/text/encoded.h"

namespace bev {
namespace {

using Ids = std::vector<int32_t>;

// [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, then the words.
const std::string kVocab =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhello\nworld\n##s\n,\ncafe\nHello\n[\nmask\n]\n";

std::shared_ptr<const TokenizerParts> parts_of(const std::string& vocab,
                                               const BertSettings& settings = {}) {
  return bert_parts({"vocab.txt", vocab}, settings);
}

TEST(BertVocab, WordsOfMain) {
  PipelineTokenizer tokenizer(parts_of(kVocab));
  EXPECT_EQ(encoded(tokenizer, "Hello, WORLDs"), (Ids{2, 5, 8, 6, 7, 3}));
  EXPECT_EQ(encoded(tokenizer, ""), (Ids{2, 3}));
  Ids begun{9};
  tokenizer.encode_begun("hello", begun);
  EXPECT_EQ(begun, (Ids{9, 2, 5}));
  EXPECT_EQ(encoded(tokenizer, "Caf\u00E9 [MASK] nope"), (Ids{2, 9, 4, 1, 3}));
  EXPECT_EQ(tokenizer.eod_id(), 3);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Begin), 2);
  EXPECT_EQ(tokenizer.role_id(TokenRole::End), 3);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Mask), 4);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Pad), 0);
  EXPECT_EQ(tokenizer.vocab_size(), 14);
  EXPECT_EQ(tokenizer.decode(Ids{2, 5, 8, 6, 7, 3}), "[CLS] hello, worlds [SEP]");
  EXPECT_EQ(tokenizer.decode(Ids{2, 5, 8, 6, 7, 3}, SpecialIds::LeaveOut), "hello, worlds");
  EXPECT_EQ(tokenizer.token_name(7), "##s");
  EXPECT_EQ(encoded(tokenizer, std::string(101, 's')), (Ids{2, 1, 3}));
}

TEST(BertVocab, Cased) {
  PipelineTokenizer tokenizer(parts_of(kVocab, {.lower_case = false}), false);
  EXPECT_EQ(encoded(tokenizer, "Hello hello caf\u00E9 cafe"), (Ids{10, 5, 1, 9}));
}

TEST(BertVocab, PairsHaveTypes) {
  PipelineTokenizer tokenizer(parts_of(kVocab));
  const EncodedPair pair = tokenizer.encode_pair("hello", "world world", true);
  EXPECT_EQ(pair.ids, (Ids{2, 5, 3, 6, 6, 3}));
  EXPECT_EQ(pair.type_ids, (Ids{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(tokenizer.encode_pair("hello", "world", false).ids, (Ids{5, 6}));
}

TEST(BertVocab, Classic) {
  PipelineTokenizer tokenizer(parts_of(kVocab, {.classic = true, .extra_ids = 2}));
  EXPECT_EQ(encoded(tokenizer, "hello [MASK]"), (Ids{5, 11, 12, 13}));
  EXPECT_EQ(encoded(tokenizer, ""), Ids{});
  EXPECT_EQ(tokenizer.eod_id(), std::nullopt);
  EXPECT_EQ(tokenizer.vocab_size(), 18);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Begin), 14);
  EXPECT_EQ(tokenizer.role_id(TokenRole::End), 15);
  EXPECT_EQ(tokenizer.token_name(16), "<extra_id_0>");
  EXPECT_EQ(tokenizer.decode(Ids{14, 5, 16}, SpecialIds::LeaveOut), "hello");
  // [BOS] of the vocabulary is that one.
  PipelineTokenizer other(parts_of("[BOS]\n" + kVocab, {.classic = true}));
  EXPECT_EQ(other.role_id(TokenRole::Begin), 0);
  EXPECT_EQ(other.vocab_size(), 16);
}

TEST(BertVocab, Hostile) {
  const auto refused = [](const std::string& vocab, const std::string& message) {
    test::expect_error(ErrorKind::Data, message, [&] { parts_of(vocab); });
  };
  refused("", "vocab.txt: the token [PAD] is missing");
  refused("[PAD]\n[UNK]\n[CLS]\n[SEP]\n", "vocab.txt: the token [MASK] is missing");
  refused("a\n\nb\n", "vocab.txt:2: the line is empty");
  refused("a\n\xFF\n", "vocab.txt:2: ");
  refused(kVocab + "hello\n", "vocab.txt: line 15: the token \"hello\" is there twice, with ids 5");
  EXPECT_EQ(parts_of("[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]")->model->names().size(), 5);
}

void write(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

TEST(OpenTokenizer, Bert) {
  const test::TemporaryDirectory dir;
  write(dir / "vocab.txt", kVocab);
  TokenizerSpec spec;
  spec.kind = TokenizerKind::BertLower;
  test::expect_error(ErrorKind::Usage, "bert-lower needs --vocab-file vocab.txt",
                     [&] { open_tokenizer(spec); });
  spec.vocab_file = (dir / "vocab.txt").string();
  EXPECT_EQ(open_tokenizer(spec)->vocab_size(), 14);
  spec.add_template = false;
  EXPECT_EQ(encoded(*open_tokenizer(spec), "hello"), Ids{5});
  spec.kind = TokenizerKind::BertCased;
  EXPECT_EQ(open_tokenizer(spec)->vocab_size(), 114);
  EXPECT_EQ(encoded(*open_tokenizer(spec), "a<extra_id_7>"), (Ids{1, 21}));
  spec.extra_ids = 3;
  EXPECT_EQ(open_tokenizer(spec)->vocab_size(), 17);
  spec.extra_ids = 0;
  spec.classic = true;
  EXPECT_EQ(open_tokenizer(spec)->vocab_size(), 16);
}

TEST(DetectTokenizer, ByContent) {
  const test::TemporaryDirectory dir;
  const std::string folder = dir.path().string();
  const auto refused = [](const std::string& path) {
    test::expect_error(ErrorKind::Data, "looked for: tokenizer.json",
                       [&] { detect_tokenizer(path); });
  };
  refused(folder);
  write(dir / "vocab.json", R"({"a": 0})");
  refused((dir / "vocab.json").string());
  write(dir / "merges.txt", "");
  const TokenizerSpec gpt2 = detect_tokenizer(folder);
  EXPECT_EQ(gpt2.kind, TokenizerKind::Gpt2);
  EXPECT_EQ(gpt2.vocab_file, (dir / "vocab.json").string());
  EXPECT_EQ(gpt2.merge_file, (dir / "merges.txt").string());
  write(dir / "vocab.txt", kVocab);
  EXPECT_EQ(detect_tokenizer(folder).kind, TokenizerKind::BertCased);
  write(dir / "vocab.txt", "[PAD]\n[UNK]\n[unused1]\nhello\n##s\n");
  EXPECT_EQ(detect_tokenizer(folder).kind, TokenizerKind::BertLower);
  EXPECT_EQ(detect_tokenizer((dir / "vocab.txt").string()).vocab_file,
            (dir / "vocab.txt").string());
  write(dir / "x.model", std::string("\n\x0C\n\x05<unk>\x15\0\0\0\0", 14));
  EXPECT_EQ(detect_tokenizer(folder).kind, TokenizerKind::SentencePiece);
  EXPECT_EQ(detect_tokenizer(folder).model, (dir / "x.model").string());
  write(dir / "tokenizer.json", R"({"model": {"type": "BPE"}})");
  EXPECT_EQ(detect_tokenizer(folder).kind, TokenizerKind::HuggingFace);
  write(dir / "text.txt", "\nan empty line and text\n");
  refused((dir / "text.txt").string());
  test::expect_error(ErrorKind::Data, "absent",
                     [&] { detect_tokenizer((dir / "absent").string()); });
}

}  // namespace
}  // namespace bev
