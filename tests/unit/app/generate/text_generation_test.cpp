#include "app/generate/text_generation.h"

#include <gtest/gtest.h>

#include "app/generate/output_formats.h"
#include "base/json.h"
#include "unit/infer/stored_model.h"

namespace bev::app {
namespace {

using Ids = std::vector<int32_t>;

// LetterDecoder for the ids of a tiny vocabulary.
class LetterDecoder final : public Tokenizer {
 public:
  std::unique_ptr<Tokenizer> clone() const override { return std::make_unique<LetterDecoder>(); }
  void encode(std::string_view, std::vector<int32_t>&) override {}
  std::string decode(std::span<const int32_t> ids, SpecialIds) const override {
    std::string text;
    for (const int32_t id : ids) text += static_cast<char>('A' + id);
    return text;
  }
  std::string token_name(int32_t id) const override {
    return std::string(1, static_cast<char>('A' + id));
  }
  int64_t vocab_size() const override { return 11; }
  std::optional<int32_t> eod_id() const override { return {}; }
};

struct Made {
  std::vector<GeneratedText> texts;
  std::string pieces;
  GenerationTotals totals;
};

class TextGeneration : public testing::Test {
 protected:
  Made make(const std::vector<GenerationRequest>& requests,
            const std::vector<std::string>& stops = {}, const Tokenizer* tokenizer = nullptr,
            std::function<bool()> goes_on = {}) {
    LoadedModel model = stored_.load(2, 9);
    InferenceEngine decoder(model, {.rows = 2, .length = 9});
    ContinuousBatcher batcher(decoder);
    Made made;
    made.totals = generate_texts(batcher, tokenizer, stops, requests,
                                 {.on_piece = [&](std::string_view piece) { made.pieces += piece; },
                                  .on_text =
                                      [&](size_t number, const GeneratedText& text) {
                                        EXPECT_EQ(number, made.texts.size());
                                        made.texts.push_back(text);
                                      },
                                  .on_step = {},
                                  .goes_on = std::move(goes_on)});
    EXPECT_TRUE(batcher.is_idle());
    return made;
  }

  static GenerationRequest request(int64_t tokens, int64_t sample = 0) {
    return {.prompt = {1, 2}, .tokens = tokens, .seed = 3, .sample = sample};
  }

  test::StoredModel stored_;
  LetterDecoder letters_;
};

TEST_F(TextGeneration, TextsInTheirOrder) {
  // The first is the longest: the others wait for it.
  const std::vector<GenerationRequest> requests{request(7), request(2, 1), request(1, 2)};
  const Made made = make(requests, {}, &letters_);
  ASSERT_EQ(made.texts.size(), 3u);
  EXPECT_EQ(made.pieces, "") << "of several there are no pieces";
  for (size_t i = 0; i < 3; ++i) {
    const Made alone = make({requests[i]}, {}, &letters_);
    EXPECT_EQ(made.texts[i].text, alone.texts[0].text);
    EXPECT_EQ(alone.pieces, alone.texts[0].text);
    EXPECT_EQ(made.texts[i].text.size(), static_cast<size_t>(requests[i].tokens));
    EXPECT_EQ(made.texts[i].end, TextEnd::Length);
  }
  EXPECT_EQ(made.totals.tokens, 10);
  EXPECT_EQ(made.totals.texts, 3);
  EXPECT_EQ(made.totals.prompt_tokens, 6);
}

TEST_F(TextGeneration, StopStrings) {
  const std::string whole = make({request(7)}, {}, &letters_).texts[0].text;
  const std::string stop = whole.substr(2, 2);
  const size_t at = whole.find(stop);
  const Made made = make({request(7), request(7, 1)}, {stop}, &letters_);
  EXPECT_EQ(made.texts[0].text, whole.substr(0, at));
  EXPECT_EQ(made.texts[0].end, TextEnd::Stop);
  EXPECT_EQ(made.texts[0].tokens.size(), at + 2);
}

TEST_F(TextGeneration, TheEndOfADocument) {
  const std::vector<ScoredToken> whole = make({request(7)}).texts[0].tokens;
  GenerationRequest ended = request(7);
  ended.end = whole[3].id;
  const Made made = make({ended});
  EXPECT_EQ(made.texts[0].end, TextEnd::End);
  EXPECT_LE(made.texts[0].tokens.size(), 3u);
}

TEST_F(TextGeneration, IdsWithoutATokenizer) {
  const Made made = make({request(2)});
  const std::vector<ScoredToken>& tokens = made.texts[0].tokens;
  EXPECT_EQ(made.texts[0].text, format("{} {}", tokens[0].id, tokens[1].id));
}

TEST_F(TextGeneration, Interruption) {
  int steps = 0;
  const Made made =
      make({request(7), request(7, 1), request(7, 2)}, {}, &letters_, [&] { return ++steps < 3; });
  ASSERT_EQ(made.texts.size(), 3u);
  EXPECT_EQ(made.texts[0].end, TextEnd::Interrupted);
  EXPECT_EQ(made.texts[0].text.size(), 3u);
  EXPECT_EQ(made.texts[2].text, "") << "its turn never came";
}

TEST_F(TextGeneration, ScoresPrompts) {
  GenerationRequest scored = request(0);
  scored.score_prompt = true;
  const Made made = make({scored});
  ASSERT_EQ(made.texts[0].prompt.size(), 1u);
  EXPECT_EQ(made.texts[0].prompt[0].id, 2);
  EXPECT_LT(made.texts[0].prompt[0].logprob, 0);
  EXPECT_TRUE(made.texts[0].tokens.empty());
}

const GeneratedText kText{
    .text = "cd", .tokens = {{2, -0.5}, {3, -1.25}}, .prompt = {{1, -2.0}}, .end = TextEnd::Stop};
const Prompt kPrompt{.name = "p", .text = "a\"b", .ids = {0, 1}};

TEST(TextForms, Lines) { EXPECT_EQ(as_line(kPrompt, kText), "a\"bcd\n"); }

TEST(TextForms, JsonLines) {
  const std::string line = as_json_line(kPrompt, kText, true);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const Json json = parse_json(line, "line");
  EXPECT_EQ(json, Json({{"prompt", "a\"b"},
                        {"text", "a\"bcd"},
                        {"continuation", "cd"},
                        {"length", 2},
                        {"finished", false},
                        {"finish", "stop"},
                        {"ids", {2, 3}},
                        {"prompt_ids", {0, 1}},
                        {"logprobs", {-0.5, -1.25}},
                        {"prompt_logprobs", Json::array({-2.0})}}));
  EXPECT_FALSE(parse_json(as_json_line(kPrompt, kText, false), "line").contains("logprobs"));
  EXPECT_NE(as_json_line({.text = "\xFF"}, kText, false).find("\uFFFD"), std::string::npos);
}

TEST(TextForms, TokenTables) {
  EXPECT_EQ(as_token_table(kPrompt, kText, nullptr),
            "   -2.0000       1\n"
            "   -2.0000  the prompt from its second token on, 1 tokens\n"
            "   -0.5000       2\n"
            "   -1.2500       3\n"
            "   -1.7500  the continuation, 2 tokens\n");
  EXPECT_NE(
      as_token_table(kPrompt, kText, std::make_unique<LetterDecoder>().get()).find("  \"D\"\n"),
      std::string::npos);
}

// The prompt of a T5 is not part of its text.
TEST(TextForms, PromptsOfEncoders) {
  Prompt prompt = kPrompt;
  prompt.is_continued = false;
  GeneratedText text = kText;
  text.prompt.clear();
  EXPECT_EQ(as_line(prompt, text), "cd\n");
  EXPECT_EQ(parse_json(as_json_line(prompt, text, true), "line")["text"], "cd");
  EXPECT_EQ(as_token_table(prompt, text, nullptr),
            "   -0.5000       2\n"
            "   -1.2500       3\n"
            "   -1.7500  the continuation, 2 tokens\n");
}

TEST(TextForms, MegatronDataset) {
  EXPECT_EQ(as_megatron_sample(kPrompt, kText), "\nContext:a\"b\n\n\nMegatron-LM:cd\n");
}

TEST(TextForms, Rates) {
  EXPECT_EQ(rate_text({.texts = 1, .tokens = 3000, .seconds = 2, .first_seconds = 0.25}),
            "3,000 tokens in 2.00 s: 1500.0 tokens/s; the first after 0.250 s");
}

}  // namespace
}  // namespace bev::app
