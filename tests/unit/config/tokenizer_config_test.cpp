#include "config/tokenizer_config.h"

#include <gtest/gtest.h>

#include "config/parse/toml.h"
#include "unit/config/loading.h"

namespace bev {
namespace {

// Everything but the vocabulary.
Args without_vocab() {
  return {"--num-layers", "2",   "--hidden-size",      "64", "--num-attention-heads", "4",
          "--seq-length", "128", "--micro-batch-size", "2"};
}

struct VocabAndEod {
  int64_t vocab, eod;
  bool operator==(const VocabAndEod&) const = default;
};

VocabAndEod facts_of(const Args& args) {
  const LoadedConfig loaded = load(args);
  // What is printed means the same when it is read again.
  const TemporaryFile file(print_config(loaded.config, loaded.origins), "again.toml");
  const Args again{file.path()};
  EXPECT_EQ(print_config(load(again).config), print_config(loaded.config));
  return {loaded.config.model.vocab, loaded.config.data.eod};
}

TEST(TokenizerConfig, Bytes) {
  EXPECT_EQ(facts_of(without_vocab() + Args{"--data.tokenizer", "byte"}), (VocabAndEod{257, 256}));
  EXPECT_EQ(facts_of(without_vocab() +
                     Args{"--data.tokenizer", "byte", "--vocab-size", "300", "--data.eod", "7"}),
            (VocabAndEod{300, 7}));
  expect_problem(without_vocab() + Args{"--data.tokenizer", "byte", "--vocab-size", "256"},
                 {"256", "257"});
}

TEST(TokenizerConfig, NullTokenizer) {
  const Args null =
      without_vocab() + Args{"--tokenizer-type", "NullTokenizer", "--vocab-size", "1000"};
  EXPECT_EQ(facts_of(null), (VocabAndEod{1000, 999}));
  EXPECT_EQ(facts_of(null + Args{"--null-tokenizer-eod-id", "7"}), (VocabAndEod{1000, 7}));
  EXPECT_EQ(facts_of(null + Args{"--compat", "classic"}), (VocabAndEod{1001, 1000}));
}

TEST(TokenizerConfig, Gpt2) {
  const Args gpt2 = without_vocab() + Args{"--tokenizer-type", "GPT2BPETokenizer"};
  EXPECT_EQ(facts_of(gpt2), (VocabAndEod{50257, 50256}));
  const TemporaryFile vocab(R"({"a": 0, "<|endoftext|>": 1, "b": 2})", "vocab.json");
  EXPECT_EQ(facts_of(gpt2 + Args{"--vocab-file", vocab.path()}), (VocabAndEod{3, 1}));
}

// Its row of the embedding would be missing.
TEST(TokenizerConfig, EndOfDocumentIsInTheVocabulary) {
  expect_problem(small_model() + Args{"--data.eod", "1000"},
                 {"1000", "--data.eod", "data.eod below 1000"});
  EXPECT_EQ(facts_of(small_model() + Args{"--data.eod", "999"}), (VocabAndEod{1000, 999}));
}

TEST(TokenizerConfig, VocabularyThatCannotBeRead) {
  const Args gpt2 = without_vocab() + Args{"--tokenizer-type", "GPT2BPETokenizer"};
  expect_problem(gpt2 + Args{"--vocab-file", "/no/such/vocab.json"},
                 {"vocab_file", "/no/such/vocab.json", "vocab.json of a GPT-2 tokenizer"});
  for (const char* content : {"[]", "{}", "{\"a\":", ""}) {
    const TemporaryFile vocab(content, "vocab.json");
    expect_problem(gpt2 + Args{"--vocab-file", vocab.path()}, {"vocab.json"});
  }
}

TEST(TokenizerConfig, NoneLeavesEverything) {
  EXPECT_EQ(facts_of(small_model()), (VocabAndEod{1000, -1}));
  EXPECT_EQ(facts_of(small_model() + Args{"--data.tokenizer", "external", "--data.eod", "3"}),
            (VocabAndEod{1000, 3}));
}

}  // namespace
}  // namespace bev
