#include "text/huggingface/tokenizer_json.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "text/bpe/bpe_vocab.h"
#include "text/utf8.h"
#include "unit/text/encoded.h"
#include "unit/text/random_text.h"

namespace bev {
namespace {

using Ids = std::vector<int32_t>;

Json added(int64_t id, const std::string& content, bool special = true) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

// Every byte by its value, then he 256, " t" 257, " the" 258, and <|endoftext|> 259 behind them.
Json byte_level() {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte)
    vocab[name_of_bytes(std::string(1, static_cast<char>(byte)))] = byte;
  const std::string blank = name_of_bytes(" ");
  vocab["he"] = 256;
  vocab[blank + "t"] = 257;
  vocab[blank + "the"] = 258;
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", {added(259, "<|endoftext|>")}},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model",
       {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"h e", blank + " t", blank + "t he"}}}}};
}

// <unk> 0, <s> 1, </s> 2, the marks and letters, and the merges of Llama 2's kind.
Json metaspace_bpe() {
  Json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2},     {"\u2581", 3}, {"a", 4},
                {"b", 5},     {"ab", 6},  {"\u2581ab", 7}, {"<0xC3>", 8}, {"<0xA9>", 9}};
  return {{"added_tokens", {added(0, "<unk>"), added(1, "<s>"), added(2, "</s>")}},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers",
             {{{"type", "Prepend"}, {"prepend", "\u2581"}},
              {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}}},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single",
             {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
            {"pair",
             {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
              {{"SpecialToken", {{"id", "</s>"}, {"type_id", 4}}}},
              {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}}},
            {"special_tokens",
             {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}},
              {"</s>", {{"id", "</s>"}, {"ids", {2, 2}}, {"tokens", {"</s>", "</s>"}}}}}}}},
          {"decoder",
           {{"type", "Sequence"},
            {"decoders",
             {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
              {{"type", "ByteFallback"}},
              {{"type", "Fuse"}},
              {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", vocab},
            {"merges", Json::array({Json::array({"a", "b"}), Json::array({"\u2581", "ab"})})}}}};
}

Json unigram() {
  return {
      {"pre_tokenizer",
       {{"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "WhitespaceSplit"}},
          {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"add_prefix_space", true}}}}}},
      {"added_tokens", {added(1, "</s>"), added(0, "<pad>"), added(7, "<extra_id_0>")}},
      {"decoder", {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}}},
      {"model",
       {{"type", "Unigram"},
        {"unk_id", 2},
        {"vocab", Json::array({Json::array({"<pad>", 0.0}), Json::array({"</s>", 0.0}),
                               Json::array({"<unk>", 0.0}), Json::array({"\u2581", -2.0}),
                               Json::array({"a", -3.0}), Json::array({"\u2581a", -4.5}),
                               Json::array({"b", -3.5})})}}}};
}

Json wordpiece() {
  return {
      {"normalizer", {{"type", "BertNormalizer"}, {"lowercase", true}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"added_tokens", {added(0, "[UNK]"), added(1, "[CLS]"), added(2, "[SEP]")}},
      {"post_processor",
       {{"type", "BertProcessing"},
        {"cls", Json::array({"[CLS]", 1})},
        {"sep", Json::array({"[SEP]", 2})}}},
      {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
      {"model",
       {{"type", "WordPiece"},
        {"unk_token", "[UNK]"},
        {"max_input_chars_per_word", 4},
        {"vocab", {{"[UNK]", 0}, {"[CLS]", 1}, {"[SEP]", 2}, {"un", 3}, {"##do", 4}, {".", 5}}}}}};
}

std::shared_ptr<const TokenizerParts> parts_of(const Json& file, const Json* config = nullptr) {
  const JsonCursor place(file, "t.json");
  if (config == nullptr) return parse_tokenizer_json(place);
  const JsonCursor config_place(*config, "tokenizer_config.json");
  return parse_tokenizer_json(place, &config_place);
}

PipelineTokenizer tokenizer_of(const Json& file) { return PipelineTokenizer(parts_of(file)); }

Ids encoded(const Json& file, std::string_view text) {
  PipelineTokenizer tokenizer = tokenizer_of(file);
  return encoded(tokenizer, text);
}

TEST(TokenizerJson, ByteLevel) {
  PipelineTokenizer tokenizer = tokenizer_of(byte_level());
  EXPECT_EQ(tokenizer.vocab_size(), 260);
  EXPECT_EQ(tokenizer.eod_id(), 259);
  EXPECT_EQ(encoded(tokenizer, ""), Ids{});
  EXPECT_EQ(encoded(tokenizer, "the the"), (Ids{'t', 256, 258}));
  EXPECT_EQ(encoded(tokenizer, "he<|endoftext|> the"), (Ids{256, 259, 258}));
  EXPECT_EQ(encoded(tokenizer, "he\xFF"), (Ids{256, 0xEF, 0xBF, 0xBD}));
  EXPECT_EQ(tokenizer.decode(Ids{258, 259, 0xFF, -1, 260}), " the<|endoftext|>\xFF");
  EXPECT_EQ(tokenizer.decode(Ids{258, 259}, SpecialIds::LeaveOut), " the");
  EXPECT_EQ(tokenizer.token_name(258), name_of_bytes(" the"));
  EXPECT_EQ(tokenizer.token_name(259), "<|endoftext|>");
}

TEST(TokenizerJson, ByteLevelVariants) {
  Json file = byte_level();
  file["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_EQ(encoded(file, "the"), Ids{258});
  EXPECT_EQ(encoded(file, " the<|endoftext|>the"), (Ids{258, 259, 258}));
  file["pre_tokenizer"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  EXPECT_EQ(encoded(file, "1 the"), (Ids{'1', 258}));
  const std::string blank = name_of_bytes(" ");
  file["model"]["vocab"][blank + "he"] = 259;
  file["model"]["merges"] = {"h e", blank + " he"};
  file["added_tokens"] = Json::array();
  EXPECT_EQ(encoded(file, "1 he"), (Ids{'1', 259}));
  file["model"]["ignore_merges"] = true;
  EXPECT_EQ(encoded(file, " the"), Ids{258});
  EXPECT_EQ(encoded(file, " thex"), (Ids{' ', 't', 256, 'x'}));
}

TEST(TokenizerJson, Llama3Pattern) {
  const std::string pattern =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  Json file = byte_level();
  file["model"]["vocab"]["1234"] = 259;
  file["model"]["vocab"]["12"] = 260;
  file["model"]["vocab"]["34"] = 261;
  file["model"]["merges"] = {"1 2", "3 4", "12 34"};
  file["added_tokens"] = Json::array();
  const auto with = [&](const std::string& regex) {
    file["pre_tokenizer"] = {
        {"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "Split"},
           {"pattern", {{"Regex", regex}}},
           {"behavior", "Isolated"},
           {"invert", false}},
          {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
    return file;
  };
  EXPECT_EQ(encoded(with(pattern), "1234"), (Ids{260, '3', '4'}));
  std::string one = pattern;
  one.erase(one.find("{1,3}"), 5);
  EXPECT_EQ(encoded(with(one), "1234"), (Ids{'1', '2', '3', '4'}));
  test::expect_error(ErrorKind::Data, "t.json: pre_tokenizer.pretokenizers[0].pattern: ", [&] {
    parts_of(with(pattern + "|x"));
  });
}

TEST(TokenizerJson, RoundTripOfRandomBytes) {
  Json prefixed = byte_level();
  prefixed["pre_tokenizer"]["use_regex"] = false;
  for (const Json& file : {byte_level(), prefixed}) {
    PipelineTokenizer tokenizer = tokenizer_of(file);
    std::mt19937 random(3);
    for (int round = 0; round < 1500; ++round) {
      std::string text = test::random_text(random, 40);
      if (round % 3 == 0)
        for (char& c : text) c = static_cast<char>(random());
      if (round % 5 == 0) text += "<|endoftext|> the";
      const Ids ids = encoded(tokenizer, text);
      ASSERT_EQ(tokenizer.decode(ids), replace_invalid_utf8(text));
      ASSERT_EQ(encoded(tokenizer, text), ids);  // from the cache
    }
  }
}

TEST(TokenizerJson, Metaspace) {
  PipelineTokenizer tokenizer = tokenizer_of(metaspace_bpe());
  EXPECT_EQ(encoded(tokenizer, "ab ab"), (Ids{1, 7, 7}));
  EXPECT_EQ(encoded(tokenizer, "ab  ab"), (Ids{1, 7, 3, 7}));
  EXPECT_EQ(encoded(tokenizer, "b\u00E9xyb"), (Ids{1, 3, 5, 8, 9, 0, 5}));
  EXPECT_EQ(encoded(tokenizer, "ab</s>ab"), (Ids{1, 7, 2, 7}));
  EXPECT_EQ(encoded(tokenizer, ""), Ids{1});
  EXPECT_EQ(tokenizer.eod_id(), 2);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Begin), 1);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Unknown), 0);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Mask), std::nullopt);
  EXPECT_EQ(tokenizer.decode(Ids{1, 7, 7, 8, 9}, SpecialIds::LeaveOut), "ab ab\u00E9");
  EXPECT_EQ(tokenizer.decode(Ids{8, 7}), "\uFFFD ab");
  const EncodedPair pair = tokenizer.encode_pair("ab", "b", true);
  EXPECT_EQ(pair.ids, (Ids{7, 2, 2, 3, 5}));
  EXPECT_EQ(pair.type_ids, (Ids{0, 4, 4, 1, 1}));
  EXPECT_EQ(tokenizer.encode_typed("ab", false).ids, Ids{7});
}

// Words are encoded by themselves only where no token reaches into the next.
TEST(TokenizerJson, TokensAcrossWords) {
  Json file = metaspace_bpe();
  EXPECT_TRUE(parts_of(file)->model->words_are_apart());
  file["model"]["vocab"]["b\u2581"] = 10;
  file["model"]["merges"].push_back(Json::array({"b", "\u2581"}));
  EXPECT_FALSE(parts_of(file)->model->words_are_apart());
  EXPECT_EQ(encoded(file, "b b"), (Ids{1, 3, 10, 5}));
}

TEST(TokenizerJson, PrependFirst) {
  Json file = metaspace_bpe();
  file["normalizer"] = nullptr;
  file["pre_tokenizer"] = {{"type", "Metaspace"},
                           {"replacement", "\u2581"},
                           {"prepend_scheme", "first"},
                           {"split", false}};
  EXPECT_EQ(encoded(file, "ab</s>ab ab"), (Ids{1, 7, 2, 6, 7}));
  EXPECT_EQ(encoded(file, "</s>ab"), (Ids{1, 2, 6}));
  file["normalizer"] = {{"type", "BertNormalizer"}};
  test::expect_error(ErrorKind::Data, "t.json: pre_tokenizer.prepend_scheme: \"\\\"first\\\"\"",
                     [&] { parts_of(file); });
}

TEST(TokenizerJson, Unigram) {
  PipelineTokenizer tokenizer = tokenizer_of(unigram());
  EXPECT_EQ(tokenizer.vocab_size(), 8);
  EXPECT_EQ(encoded(tokenizer, " a\tab  xx"), (Ids{5, 5, 6, 3, 2}));
  EXPECT_EQ(encoded(tokenizer, "a<extra_id_0>a</s>"), (Ids{5, 7, 5, 1}));
  EXPECT_EQ(tokenizer.decode(Ids{5, 6, 5, 1}, SpecialIds::LeaveOut), "ab a");
  EXPECT_EQ(tokenizer.eod_id(), 1);
}

TEST(TokenizerJson, WordPiece) {
  PipelineTokenizer tokenizer = tokenizer_of(wordpiece());
  EXPECT_EQ(encoded(tokenizer, "Undo. undoo [SEP]"), (Ids{1, 3, 4, 5, 0, 2, 2}));
  EXPECT_EQ(tokenizer.decode(Ids{1, 3, 4, 5, 2}, SpecialIds::LeaveOut), "undo.");
  EXPECT_EQ(tokenizer.encode_pair("un", "un", true).type_ids, (Ids{0, 0, 0, 1, 1}));
  EXPECT_EQ(tokenizer.eod_id(), 2);
  Json roberta = wordpiece();
  roberta["post_processor"]["type"] = "RobertaProcessing";
  PipelineTokenizer other = tokenizer_of(roberta);
  EXPECT_EQ(other.encode_pair("un", "un", true).ids, (Ids{1, 3, 2, 2, 3, 2}));
  EXPECT_EQ(other.encode_pair("un", "un", true).type_ids, Ids(6, 0));
}

TEST(TokenizerJson, AddedTokens) {
  Json file = wordpiece();
  Json word = added(6, "Do", false);
  word["normalized"] = true;
  file["added_tokens"].push_back(word);
  Json alone = added(7, "x", false);
  alone["single_word"] = true;
  file["added_tokens"].push_back(alone);
  PipelineTokenizer tokenizer = tokenizer_of(file);
  EXPECT_EQ(encoded(tokenizer, "undo un x xun"), (Ids{1, 3, 6, 3, 7, 0, 2}));
  EXPECT_EQ(tokenizer.token_name(6), "do");             // as it is looked for
  file["added_tokens"].push_back(added(8, "", false));  // nothing to be found
  EXPECT_EQ(tokenizer_of(file).vocab_size(), 8);
}

TEST(TokenizerJson, RolesOfTheConfiguration) {
  const Json config = {{"eos_token", "<s>"},
                       {"bos_token", {{"content", "</s>"}, {"lstrip", false}}},
                       {"pad_token", nullptr},
                       {"mask_token", "absent"}};
  const auto parts = parts_of(metaspace_bpe(), &config);
  const PipelineTokenizer tokenizer(parts);
  EXPECT_EQ(tokenizer.eod_id(), 1);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Begin), 2);
  EXPECT_EQ(tokenizer.role_id(TokenRole::Mask), std::nullopt);
}

TEST(TokenizerJson, ClonesAreAlike) {
  PipelineTokenizer tokenizer = tokenizer_of(metaspace_bpe());
  const std::unique_ptr<Tokenizer> clone = tokenizer.clone();
  EXPECT_EQ(encoded(*clone, "ab b"), encoded(tokenizer, "ab b"));
  EXPECT_EQ(clone->decode(Ids{7}), "ab");
}

TEST(TokenizerJson, AnErrorLeavesTheIds) {
  Json file = unigram();
  file["model"].erase("unk_id");
  PipelineTokenizer tokenizer = tokenizer_of(file);
  Ids ids{5};
  test::expect_error(ErrorKind::Data, "t.json: model.vocab: the vocabulary has no token for \"x\"",
                     [&] { tokenizer.encode("a</s>x", ids); });
  EXPECT_EQ(ids, Ids{5});
}

TEST(TokenizerJson, OfFiles) {
  const test::TemporaryDirectory dir;
  const auto write = [&](const char* name, const std::string& text) {
    AtomicFile file(dir / name);
    file.write(std::string_view(text));
    file.commit();
  };
  test::expect_error(ErrorKind::Data, "tokenizer.json", [&] { read_tokenizer_json(dir.path()); });
  write("tokenizer.json", metaspace_bpe().dump());
  EXPECT_EQ(read_tokenizer_json(dir.path())->eod, 2);
  write("tokenizer_config.json", R"({"eos_token": "<s>"})");
  EXPECT_EQ(read_tokenizer_json(dir.path())->eod, 1);
  EXPECT_EQ(read_tokenizer_json(dir / "tokenizer.json")->eod, 1);
  write("tokenizer_config.json", "[]");
  test::expect_error(ErrorKind::Data, "tokenizer_config.json",
                     [&] { read_tokenizer_json(dir.path()); });
}

// One change to a good file, as a JSON pointer and a value, and what is said about it.
struct Fault {
  const char* where;
  Json value;
  const char* message;
};

void refused(const Json& good, const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    Json file = good;
    file[Json::json_pointer(fault.where)] = fault.value;
    SCOPED_TRACE(fault.where + (" = " + fault.value.dump()));
    test::expect_error(ErrorKind::Data, fault.message, [&] { parts_of(file); });
  }
}

TEST(TokenizerJson, HostileFiles) {
  test::expect_error(ErrorKind::Data, "t.json: \"[]\" is not known here; known: an object",
                     [] { parts_of(Json::array()); });
  test::expect_error(ErrorKind::Data, "t.json: \"model\" is missing",
                     [] { parts_of(Json::object()); });
  refused(byte_level(),
          {{"/version", "2.0", "t.json: version: \"\\\"2.0\\\"\" is not known here; known: 1.0"},
           {"/normalizer", {{"type", "NFKC"}}, "t.json: normalizer.type: \"\\\"NFKC\\\"\" is not"},
           {"/normalizer", {{"type", 3}}, "normalizer.type: \"3\" is not known here; known: a str"},
           {"/normalizer", Json::object(), "t.json: normalizer: \"type\" is missing"},
           {"/normalizer",
            {{"type", "Replace"}, {"pattern", {{"Regex", "a+"}}}, {"content", ""}},
            "normalizer.pattern"},
           {"/normalizer",
            {{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", ""}},
            "a String that is not empty"},
           {"/normalizer",
            {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}},
            "normalizer.precompiled_charsmap: 3 bytes are no table"},
           {"/pre_tokenizer/type", "Whitespace", "known: ByteLevel, Split, Metaspace"},
           {"/pre_tokenizer/use_regex", 1, "pre_tokenizer.use_regex: \"1\" is not known here"},
           {"/post_processor", {{"type", "Other"}}, "post_processor.type"},
           {"/decoder", {{"type", "CTC"}}, "t.json: decoder.type: \"\\\"CTC\\\"\""},
           {"/model/type", "WordLevel", "known: BPE, with ByteLevel"},
           {"/model/dropout", 0.1, "t.json: model.dropout"},
           {"/model/end_of_word_suffix", "</w>", "t.json: model.end_of_word_suffix"},
           {"/model/continuing_subword_prefix", "##", "t.json: model.continuing_subword_prefix"},
           {"/model/vocab", Json::array(), "t.json: model.vocab: \"[]\" is not known here"},
           {"/model/vocab/he", 3, "both have id 3"},
           {"/model/vocab/he", -1, "the id of token \"he\" is -1"},
           {"/model/vocab/he", "1", "the id of token \"he\" is no integer"},
           {"/model/vocab/he", 1e9, "the id of token \"he\" is no integer"},
           {"/model/vocab/he", 1000000000, "ids are 0 to 4194303"},
           {"/model/merges", {"h e", "h e"}, "model.merges[1]: \"h\" and \"e\" were merged before"},
           {"/model/merges", {"he"}, "two tokens with a blank between them"},
           {"/model/merges", {"h e r"}, "model.merges[0]"},
           {"/model/merges", {3}, "model.merges[0]: \"3\" is not known here; known: a string"},
           {"/model/merges", Json::array({Json::array({"h"})}), "known: two tokens"},
           {"/model/merges", {"h xx"}, "the right token \"xx\" is not in the vocabulary"},
           {"/model/merges", {"h h"}, "the merged token \"hh\" is not in the vocabulary"},
           {"/added_tokens/0/id", 260, "the id of \"<|endoftext|>\" is 260; the vocabulary and"},
           {"/added_tokens/0/id", "x", "added_tokens[0].id"},
           {"/added_tokens/0/content", "he", "the id of \"he\" is 259"},
           {"/added_tokens/0", {{"content", "x"}}, "added_tokens[0]: \"special\" is missing"},
           {"/added_tokens/1", added(259, "<|endoftext|>"), "is added twice"}});
}

TEST(TokenizerJson, HostileParts) {
  refused(metaspace_bpe(),
          {{"/model/unk_token", "absent", "model.unk_token: \"\\\"absent\\\"\" is not known here"},
           {"/post_processor/special_tokens/<s>/ids/0", 99, "known: the id of a token"},
           {"/post_processor/single/1/Sequence/id", "B", "post_processor.single"},
           {"/post_processor/single/1/Sequence/id", "C", "known: A, B"},
           {"/post_processor/single/0/SpecialToken/id", "<t>", "\"<t>\" is missing"},
           {"/post_processor/pair/2/Sequence/id", "A", "post_processor.pair"},
           {"/post_processor/pair/2", Json::object(), "known: Sequence, SpecialToken"},
           {"/post_processor/single/1/Sequence/type_id", -1, "type_id"},
           {"/decoder/decoders/3/start", -1, "decoder.decoders[3].start"},
           {"/decoder/decoders/3/content", "ab", "known: a string of one character"},
           {"/decoder/decoders/0/pattern", "x", "decoder.decoders[0].pattern"}});
  refused(unigram(), {{"/model/unk_id", 7, "model.unk_id"},
                      {"/model/unk_id", -1, "model.unk_id"},
                      {"/model/vocab/1/0", "<pad>", "the token \"<pad>\" is there twice"},
                      {"/model/vocab/1/1", "x", "model.vocab[1][1]"},
                      {"/model/vocab/1", Json::array({"x"}), "known: a token and its score"},
                      {"/pre_tokenizer/pretokenizers/1/prepend_scheme", "last", "always, first"}});
  refused(wordpiece(), {{"/model/unk_token", "x", "model.unk_token"},
                        {"/model/max_input_chars_per_word", -1, "max_input_chars_per_word"},
                        {"/post_processor/cls", Json::array({"[CLS]", 9}), "post_processor.cls[1]"},
                        {"/pre_tokenizer",
                         {{"type", "ByteLevel"}, {"add_prefix_space", false}},
                         "known: BPE, with ByteLevel"}});
  Json behind = byte_level();
  behind["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "ByteLevel"}, {"add_prefix_space", false}}, {{"type", "WhitespaceSplit"}}}}};
  test::expect_error(ErrorKind::Data, "known: nothing after ByteLevel", [&] { parts_of(behind); });
}

}  // namespace
}  // namespace bev
