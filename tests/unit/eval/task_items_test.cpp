#include "eval/task_items.h"

#include <gtest/gtest.h>

#include "eval/lambada.h"
#include "eval/multiple_choice.h"
#include "eval/wikitext.h"
#include "text/bpe/bpe_vocab.h"
#include "text/bpe/gpt2_tokenizer.h"
#include "text/huggingface/bert_vocab.h"
#include "text/huggingface/tokenizer_json.h"
#include "text/utf8.h"
#include "unit/text/random_text.h"
#include "unit/text/tiny_bpe.h"

namespace bev {
namespace {

using Ids = std::vector<int32_t>;

PipelineTokenizer tokenizer_of(const Json& file) {
  return PipelineTokenizer(parse_tokenizer_json(JsonCursor(file, "t.json")));
}

// Of Llama 2's kind: a blank and <s> 1 in front of every text; the blank is 2, a 3, b 4, blank and
// a 5, blank and b 6.
PipelineTokenizer llama() {
  const Json begin = {{"id", 1},         {"content", "<s>"}, {"single_word", false},
                      {"lstrip", false}, {"rstrip", false},  {"normalized", false},
                      {"special", true}};
  const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const Json mark = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  return tokenizer_of(
      {{"added_tokens", Json::array({begin})},
       {"normalizer",
        {{"type", "Sequence"},
         {"normalizers",
          {{{"type", "Prepend"}, {"prepend", "\u2581"}},
           {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}}},
       {"post_processor",
        {{"type", "TemplateProcessing"},
         {"single", Json::array({mark, text})},
         {"pair", Json::array({mark, text, {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}})},
         {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}}},
       {"model",
        {{"type", "BPE"},
         {"unk_token", "<unk>"},
         {"vocab",
          {{"<unk>", 0},
           {"<s>", 1},
           {"\u2581", 2},
           {"a", 3},
           {"b", 4},
           {"\u2581a", 5},
           {"\u2581b", 6}}},
         {"merges", Json::array({Json::array({"\u2581", "a"}), Json::array({"\u2581", "b"})})}}}});
}

// Of BERT's kind: [CLS] 2 in front of every text, [SEP] 3 behind it; one 5, two 6.
PipelineTokenizer bert() {
  return PipelineTokenizer(
      bert_parts({"vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\none\ntwo\n"}, {}));
}

// Bytes, and "a" with a blank behind it 256.
PipelineTokenizer across_words() {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte)
    vocab[name_of_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  const std::string blank = name_of_bytes(" ");
  vocab["a" + blank] = 256;
  return tokenizer_of({{"pre_tokenizer",
                        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}},
                       {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"a " + blank}}}}});
}

// Where pieces never reach over white space, context and ending have the ids that each has alone.
TEST(EndingItem, Gpt2EncodesBothAsIfApart) {
  Gpt2Tokenizer tokenizer(test::tiny_vocab({{"h", "e"}, {" ", "t"}, {" t", "he"}, {" ", " "}}));
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const std::string text = test::random_text(random, 12);
    const std::string context(strip(text)), ending = " " + test::random_text(random, 8);
    Ids expected;
    tokenizer.encode(context, expected);
    const auto first = std::ssize(expected);
    tokenizer.encode(ending, expected);
    const ScoringItem item = ending_item(context, ending, tokenizer);
    ASSERT_EQ(item.ids, expected) << context << "|" << ending;
    ASSERT_EQ(item.first, first) << context << "|" << ending;
  }
}

TEST(EndingItem, NoSecondBlankInFrontOfAnEnding) {
  PipelineTokenizer tokenizer = llama();
  const ScoringItem item = ending_item("a b", " a", tokenizer);
  EXPECT_EQ(item.ids, (Ids{1, 5, 6, 5}));
  EXPECT_EQ(item.first, 3);
}

TEST(EndingItem, NothingBehindContextAndEnding) {
  PipelineTokenizer tokenizer = bert();
  const ScoringItem item = ending_item("one two", " one", tokenizer);
  EXPECT_EQ(item.ids, (Ids{2, 5, 6, 5}));
  EXPECT_EQ(item.first, 3);
}

TEST(EndingItem, ATokenOfBothIsScored) {
  PipelineTokenizer tokenizer = across_words();
  const ScoringItem item = ending_item("xa", " b", tokenizer);
  EXPECT_EQ(item.ids, (Ids{'x', 256, 'b'}));
  EXPECT_EQ(item.first, 1);
  EXPECT_EQ(ending_item("a", " b", tokenizer).first, 0);
}

TEST(EndingItem, ChoicesAndLastWordsAreSuch) {
  PipelineTokenizer blanks = llama(), around = bert(), across = across_words();
  const ScoringItem choice =
      choice_item({.context = "a", .endings = {"b", "a"}}, 0, -1, 100, blanks);
  EXPECT_EQ(choice.ids, (Ids{1, 5, 6}));
  EXPECT_EQ(choice.first, 2);
  const ScoringItem word = lambada_item("a b a", LambadaRule::LastWord, 100, blanks);
  EXPECT_EQ(word.ids, (Ids{1, 5, 6, 5}));
  EXPECT_EQ(word.first, 3);
  // An end of a document stands in front of a token of both.
  const ScoringItem shared = choice_item({.context = "a", .endings = {"b", "c"}}, 0, 7, 9, across);
  EXPECT_EQ(shared.ids, (Ids{7, 256, 'b'}));
  EXPECT_EQ(shared.first, 1);
}

// What a vocabulary puts behind a whole text is neither a last token nor an end of a corpus.
TEST(EndingItem, NoEndOfATextIsScored) {
  PipelineTokenizer tokenizer = bert();
  const ScoringItem token = lambada_item("one two", LambadaRule::LastToken, 100, tokenizer);
  EXPECT_EQ(token.ids, (Ids{2, 5, 6}));
  EXPECT_EQ(token.first, 2);
  EXPECT_EQ(*wikitext_corpus("w", "one two", Detokenizer::None, tokenizer).text.ids,
            (Ids{2, 5, 6}));
}

}  // namespace
}  // namespace bev
