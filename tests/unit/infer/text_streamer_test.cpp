#include "infer/text_streamer.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "base/json.h"
#include "text/bpe/gpt2_tokenizer.h"
#include "text/huggingface/pipeline_tokenizer.h"
#include "text/huggingface/tokenizer_json.h"
#include "text/sentencepiece/sentencepiece_tokenizer.h"
#include "text/tokenizer.h"
#include "text/utf8.h"
#include "unit/text/random_text.h"
#include "unit/text/tiny_bpe.h"
#include "unit/text/tiny_sentencepiece.h"

namespace bev {
namespace {

using Ids = std::vector<int32_t>;

Json special(int64_t id, const std::string& content) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", true}};
}

// Llama 2's kind: blanks as U+2581, bytes for the rest, one blank less in front of a text.
Json llama_json() {
  return {{"added_tokens", {special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")}},
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
            {"byte_fallback", true},
            {"vocab",
             {{"<unk>", 0},
              {"<s>", 1},
              {"</s>", 2},
              {"<0xC3>", 3},
              {"<0xA9>", 4},
              {"\u2581", 5},
              {"a", 6},
              {"\u2581ab", 7},
              {"\u2581\u2581", 8}}},
            {"merges", Json::array()}}}};
}

Json metaspace_json() {
  return {
      {"added_tokens", {special(0, "<pad>"), special(1, "</s>")}},
      {"decoder", {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}}},
      {"model",
       {{"type", "Unigram"},
        {"unk_id", 2},
        {"vocab", Json::array({Json::array({"<pad>", 0.0}), Json::array({"</s>", 0.0}),
                               Json::array({"<unk>", 0.0}), Json::array({"\u2581", -2.0}),
                               Json::array({"a", -3.0}), Json::array({"\u2581a", -4.5})})}}}};
}

Json wordpiece_json() {
  return {{"added_tokens", {special(0, "[UNK]"), special(1, "[CLS]"), special(2, "[SEP]")}},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", "[UNK]"},
            {"max_input_chars_per_word", 9},
            {"vocab",
             {{"[UNK]", 0},
              {"[CLS]", 1},
              {"[SEP]", 2},
              {"un", 3},
              {"##do", 4},
              {".", 5},
              {"'s", 6}}}}}};
}

std::unique_ptr<Tokenizer> of_json(const Json& file) {
  return std::make_unique<PipelineTokenizer>(parse_tokenizer_json(JsonCursor(file, "t.json")));
}

// Letters, a blank, two blanks, and all bytes.
std::unique_ptr<Tokenizer> sentencepiece(bool drops_all_blanks) {
  std::string model = test::piece_field("<unk>", 0, 2) + test::piece_field("<s>", 0, 3) +
                      test::piece_field("</s>", 0, 3);
  for (const std::string piece : {"\u2581", "\u2581\u2581", "a", "\u2581b"})
    model += test::piece_field(piece, -3, 1);
  for (int byte = 0; byte < 256; ++byte) {
    std::string name = "<0x00>";
    name[3] = "0123456789ABCDEF"[byte / 16];
    name[4] = "0123456789ABCDEF"[byte % 16];
    model += test::piece_field(name, 0, 6);
  }
  model += test::bytes_field(2, test::number_field(3, 1) + test::number_field(35, 1));
  model += test::bytes_field(3, test::bytes_field(1, "identity") + test::number_field(3, 1) +
                                    test::number_field(4, drops_all_blanks ? 1 : 0) +
                                    test::number_field(5, 1));
  return std::make_unique<SentencePieceTokenizer>(model, "t.model", SentencePieceRules::Plain, 0);
}

std::unique_ptr<Tokenizer> tiny_gpt2() {
  const test::TinyMerges merges{{"\xE2", "\x82"}, {"h", "e"}, {" ", "t"}, {" t", "he"}};
  return std::make_unique<Gpt2Tokenizer>(test::tiny_vocab(merges), SpecialText::Special);
}

std::string text_of(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                    SpecialIds special = SpecialIds::LeaveOut) {
  return replace_invalid_utf8(tokenizer.decode(ids, special));
}

std::string streamed(TextStreamer& stream, std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) text += stream.add(id).text;
  return text + stream.finish();
}

// Behind each group of ids, what has been given is the beginning of their text so far, in whole
// characters, and in the end all of it.
void expect_same_as_whole(const Tokenizer& tokenizer, const std::vector<Ids>& groups,
                          SpecialIds special = SpecialIds::LeaveOut) {
  TextStreamer stream(tokenizer, {}, {}, special);
  std::string given;
  Ids ids;
  for (const Ids& group : groups) {
    for (const int32_t id : group) {
      const TextStreamer::Piece piece = stream.add(id);
      EXPECT_FALSE(piece.stopped);
      EXPECT_EQ(valid_utf8_prefix(piece.text), piece.text.size());
      given += piece.text;
      ids.push_back(id);
    }
    ASSERT_TRUE(text_of(tokenizer, ids, special).starts_with(given)) << ids.size();
  }
  EXPECT_EQ(given + stream.finish(), text_of(tokenizer, ids, special));
}

std::vector<Ids> each_alone(const Ids& ids) {
  std::vector<Ids> groups;
  for (const int32_t id : ids) groups.push_back({id});
  return groups;
}

void expect_same_for_random(const Tokenizer& tokenizer, const std::vector<Ids>& groups) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Ids> drawn;
    for (size_t left = random() % 20; left > 0; --left)
      drawn.push_back(groups[random() % groups.size()]);
    for (const SpecialIds special : {SpecialIds::LeaveOut, SpecialIds::Keep})
      expect_same_as_whole(tokenizer, drawn, special);
  }
}

std::vector<Ids> each_below(int32_t end) {
  std::vector<Ids> groups;
  for (int32_t id = 0; id < end; ++id) groups.push_back({id});
  return groups;
}

TEST(TextStreamer, RandomBytes) {
  const ByteTokenizer tokenizer;
  // Mostly what begins and continues characters.
  std::vector<Ids> groups{{'a'}, {256}, {0xE2, 0x82, 0xAC}, {0xF0, 0x9F, 0x98, 0x80}};
  for (const int32_t byte : {0x80, 0x9F, 0xA9, 0xC0, 0xC3, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xFF})
    groups.push_back({byte});
  expect_same_for_random(tokenizer, groups);
}

TEST(TextStreamer, RandomByteLevel) { expect_same_for_random(*tiny_gpt2(), each_below(261)); }

TEST(TextStreamer, RandomNumbers) { expect_same_for_random(NullTokenizer(12, 11), each_below(12)); }

TEST(TextStreamer, RandomWordPieces) {
  expect_same_for_random(*of_json(wordpiece_json()), each_below(8));
}

TEST(TextStreamer, RandomMetaspace) {
  expect_same_for_random(*of_json(metaspace_json()), each_below(7));
}

TEST(TextStreamer, RandomByteFallback) {
  // Both bytes of a character together: of wrong ones a whole text knows more than its beginning.
  std::vector<Ids> groups{{3, 4}};
  for (const int32_t id : {0, 1, 2, 5, 6, 7, 8}) groups.push_back({id});
  expect_same_for_random(*of_json(llama_json()), groups);
}

TEST(TextStreamer, RandomSentencePieces) {
  std::vector<Ids> groups = each_below(7);
  for (const int32_t byte : {0x0A, 0x41, 0x80, 0xA9, 0xC3, 0xE2, 0xFF})
    groups.push_back({7 + byte});
  groups.push_back({7 + 0xE2, 7 + 0x82, 7 + 0xAC});
  expect_same_for_random(*sentencepiece(false), groups);
  expect_same_for_random(*sentencepiece(true), groups);
}

TEST(TextStreamer, RealTexts) {
  std::mt19937 random(2);
  const auto gpt2 = tiny_gpt2(), pieces = sentencepiece(true);
  ByteTokenizer bytes;
  for (int round = 0; round < 50; ++round) {
    const std::string text = test::random_text(random, 30);
    for (Tokenizer* tokenizer :
         std::initializer_list<Tokenizer*>{gpt2.get(), pieces.get(), &bytes}) {
      Ids ids;
      tokenizer->encode(text, ids);
      expect_same_as_whole(*tokenizer, each_alone(ids));
    }
  }
}

TEST(TextStreamer, GivesWhatIsWholeAtOnce) {
  const ByteTokenizer tokenizer;
  TextStreamer stream(tokenizer);
  EXPECT_EQ(stream.add('a').text, "a");
  EXPECT_EQ(stream.add(0xC3).text, "");
  EXPECT_EQ(stream.add(0xA9).text, "\u00E9");
  EXPECT_EQ(stream.add(0xE2).text, "");
  EXPECT_EQ(stream.add('b').text, "\uFFFDb");
  EXPECT_EQ(stream.add(0xF0).text, "");
  EXPECT_EQ(stream.finish(), "\uFFFD");

  const auto llama = of_json(llama_json());
  TextStreamer bytes(*llama);
  EXPECT_EQ(bytes.add(7).text, "ab");
  EXPECT_EQ(bytes.add(7).text, " ab");
  EXPECT_EQ(bytes.add(3).text, "");
  EXPECT_EQ(bytes.add(4).text, "\u00E9");
  EXPECT_EQ(bytes.add(4).text, "");
  EXPECT_EQ(bytes.add(6).text, "\uFFFDa");
}

TEST(TextStreamer, ContinuesAPrompt) {
  const auto pieces = sentencepiece(true), words = of_json(wordpiece_json());
  TextStreamer behind(*pieces, {}, Ids{5});
  EXPECT_EQ(behind.add(6).text, " b");
  TextStreamer behind_nothing(*pieces, {}, Ids{1});
  EXPECT_EQ(behind_nothing.add(6).text, "b");
  TextStreamer word(*words, {}, Ids{3});
  EXPECT_EQ(word.add(4).text, "do");
  EXPECT_EQ(word.add(3).text, " un");
}

TEST(TextStreamer, WaitsForAFewIdsOnly) {
  const auto pieces = sentencepiece(true);
  TextStreamer wrong(*pieces), blank(*pieces);
  std::string text;
  for (int i = 0; i < 1000; ++i) text += wrong.add(7 + 0xFF).text;
  EXPECT_GT(text.size(), 2500u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(blank.add(3).text, "");
  EXPECT_EQ(blank.add(6).text, "b");
}

struct Stopped {
  std::string text;
  int64_t after;  // so many ids; -1: never
};
Stopped until_stop(std::string_view bytes, std::vector<std::string> stops) {
  const ByteTokenizer tokenizer;
  TextStreamer stream(tokenizer, std::move(stops));
  Stopped result{"", -1};
  for (size_t i = 0; i < bytes.size(); ++i) {
    const TextStreamer::Piece piece = stream.add(static_cast<unsigned char>(bytes[i]));
    result.text += piece.text;
    if (piece.stopped && result.after < 0) result.after = static_cast<int64_t>(i) + 1;
  }
  result.text += stream.finish();
  return result;
}

TEST(TextStreamer, Stops) {
  EXPECT_EQ(until_stop("one\n\ntwo", {"\n\n"}).text, "one");
  EXPECT_EQ(until_stop("one\n\ntwo", {"\n\n"}).after, 5);
  EXPECT_EQ(until_stop("one\ntwo", {"\n\n"}).text, "one\ntwo");
  EXPECT_EQ(until_stop("aab", {"ab"}).text, "a");
  EXPECT_EQ(until_stop("ababac", {"abac"}).text, "ab");
  EXPECT_EQ(until_stop("x", {"xy"}).text, "x") << "what was held back is given in the end";
  EXPECT_EQ(until_stop("x\u00E9y", {"\u00E9"}).text, "x");
  EXPECT_EQ(until_stop("x\u00E8y", {"\u00E9"}).text, "x\u00E8y");
  EXPECT_EQ(until_stop("x", {"x", "longer"}).text, "");
  EXPECT_EQ(until_stop("x", {"x", "longer"}).after, 1);
}

TEST(TextStreamer, TheStopThatIsCompleteFirst) {
  EXPECT_EQ(until_stop("abcd", {"abcd", "c"}).text, "ab");
  EXPECT_EQ(until_stop("abcd", {"c", "bc"}).text, "a");
  // The same when one token brings all of it.
  const auto gpt2 = tiny_gpt2();
  TextStreamer stream(*gpt2, {" the", "h"});
  const TextStreamer::Piece piece = stream.add(259);
  EXPECT_EQ(piece.text, " t");
  EXPECT_TRUE(piece.stopped);
  EXPECT_TRUE(stream.add('a').stopped);
  EXPECT_EQ(stream.add('a').text, "");
  EXPECT_EQ(stream.finish(), "");
}

// A stop string that is found where the whole text has it, however it is cut into tokens.
TEST(TextStreamer, RandomStops) {
  std::mt19937 random(3);
  const auto draw = [&](size_t most) {
    std::string text;
    for (size_t left = 1 + random() % most; left > 0; --left) text += "ab"[random() % 2];
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    const std::string text = draw(20), one = draw(5), two = draw(5);
    size_t at = text.size(), end = text.size() + 1;
    for (size_t i = 0; i <= text.size() && end > text.size(); ++i)
      for (const std::string& stop : {one, two})
        if (std::string_view(text).substr(0, i).ends_with(stop)) {
          at = std::min(at, i - stop.size());
          end = i;
        }
    const Stopped stopped = until_stop(text, {one, two});
    EXPECT_EQ(stopped.text, text.substr(0, at)) << text << " " << one << " " << two;
    EXPECT_EQ(stopped.after, end > text.size() ? -1 : static_cast<int64_t>(end));
  }
}

TEST(TextStreamer, SpecialTokensHaveNoText) {
  const auto gpt2 = tiny_gpt2();
  TextStreamer stream(*gpt2);
  EXPECT_EQ(streamed(stream, Ids{'a', 260, 'b'}), "ab");
  // The sentinels of a T5 are part of its text.
  TextStreamer all(*gpt2, {}, {}, SpecialIds::Keep);
  EXPECT_EQ(streamed(all, Ids{'a', 260, 'b'}), "a" + gpt2->token_name(260) + "b");
}

}  // namespace
}  // namespace bev
