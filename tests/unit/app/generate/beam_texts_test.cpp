#include <gtest/gtest.h>

#include "app/generate/text_generation.h"
#include "text/tokenizer.h"
#include "unit/infer/stored_model.h"

namespace bev::app {
namespace {

class BeamSearchTexts : public testing::Test {
 protected:
  std::vector<GeneratedText> find(const Tokenizer* tokenizer,
                                  const std::vector<std::string>& stops = {}, int32_t end = -1) {
    LoadedModel model = stored_.load(3, 9);
    InferenceEngine decoder(model, {.rows = 3, .length = 9});
    const GenerationRequest request{.prompt = {1, 2}, .tokens = 5, .end = end};
    return beam_texts(decoder, tokenizer, stops, request, {.beams = 3});
  }

  test::StoredModel stored_;
  NullTokenizer numbers_{stored_.config.model.vocab, 0};
};

TEST_F(BeamSearchTexts, AsOthers) {
  const std::vector<GeneratedText> texts = find(nullptr);
  ASSERT_EQ(texts.size(), 3u);
  for (const GeneratedText& text : texts) {
    ASSERT_EQ(text.tokens.size(), 5u);
    EXPECT_EQ(text.end, TextEnd::Length);
    EXPECT_EQ(text.text.substr(0, text.text.find(' ')), std::to_string(text.tokens[0].id));
    EXPECT_NEAR(text.beam->score, text.beam->logprob / 5, 1e-12);
  }
  EXPECT_GE(texts[0].beam->score, texts[1].beam->score);
}

TEST_F(BeamSearchTexts, UpToAStopString) {
  const std::string whole = find(&numbers_).front().text;
  ASSERT_EQ(whole[0], ' ') << "it continues a text";
  const size_t blank = whole.find(' ', 1);
  ASSERT_NE(blank, std::string::npos);
  const std::string stop = whole.substr(blank, 2);
  const GeneratedText cut = find(&numbers_, {stop}).front();
  EXPECT_EQ(cut.text, whole.substr(0, whole.find(stop)));
  EXPECT_EQ(cut.end, TextEnd::Stop);
}

TEST_F(BeamSearchTexts, Ends) {
  const int32_t end = find(nullptr).front().tokens[1].id;
  bool has_ended = false;
  for (const GeneratedText& text : find(nullptr, {}, end)) {
    has_ended = has_ended || text.end == TextEnd::End;
    for (const ScoredToken& token : text.tokens) EXPECT_NE(token.id, end);
  }
  EXPECT_TRUE(has_ended);
}

}  // namespace
}  // namespace bev::app
