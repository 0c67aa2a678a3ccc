#include "app/generate/interactive_generation.h"

#include <gtest/gtest.h>

#include <csignal>

#include "comm/communicator.h"
#include "unit/infer/stored_model.h"

namespace bev::app {
namespace {

// Letters for the ids of a tiny vocabulary. It can press Ctrl-C while an answer is made.
class Letters final : public Tokenizer {
 public:
  std::unique_ptr<Tokenizer> clone() const override { return std::make_unique<Letters>(); }
  void encode(std::string_view text, std::vector<int32_t>& ids) override {
    for (const char c : text) ids.push_back(c - 'A');
  }
  std::string decode(std::span<const int32_t> ids, SpecialIds) const override {
    if (interrupts && ids.size() == 2) std::raise(SIGINT);
    std::string text;
    for (const int32_t id : ids) text += static_cast<char>('A' + id);
    return text;
  }
  std::string token_name(int32_t id) const override {
    return std::string(1, static_cast<char>('A' + id));
  }
  int64_t vocab_size() const override { return 11; }
  std::optional<int32_t> eod_id() const override { return {}; }

  bool interrupts = false;
};

class InteractiveGenerationTest : public testing::Test {
 protected:
  // What appears when these lines come through a pipe.
  std::string answers(std::string lines) {
    LoadedModel model = stored_.load(1, 9);
    InferenceEngine decoder(model, {.rows = 1, .length = 9});
    ContinuousBatcher batcher(decoder);
    SingleCommunicator world;
    Interrupt interrupt;
    const ModelFolder folder = stored_.folder();
    std::FILE* in = ::fmemopen(lines.data(), lines.size(), "r");
    std::FILE* out = std::tmpfile();
    // fileno() of a stream in memory is none.
    InteractiveGeneration({.batcher = batcher,
                           .folder = folder,
                           .tokenizer = letters_,
                           .world = world,
                           .interrupt = interrupt,
                           .shows_rate = false,
                           .in = in,
                           .out = out},
                          settings_)
        .run();
    std::fclose(in);
    std::string text(static_cast<size_t>(std::ftell(out)), ' ');
    std::rewind(out);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), out), text.size());
    std::fclose(out);
    return text;
  }

  static std::string line(const std::string& text, size_t number) {
    size_t begin = 0;
    for (; number > 0; --number) begin = text.find('\n', begin) + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  test::StoredModel stored_;
  Letters letters_;
  GenerationSettings settings_{.tokens = 6, .context = 9, .most_context = 9};
};

TEST_F(InteractiveGenerationTest, AnswersDiffer) {
  const std::string text = answers("AB\n/again\nAB\n/set seed 1234\nAB\n");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_EQ(line(text, 0).size(), 8u);
  EXPECT_EQ(line(text, 0).substr(0, 2), "AB");
  EXPECT_NE(line(text, 0), line(text, 1));
  EXPECT_NE(line(text, 1), line(text, 2));
  EXPECT_EQ(line(text, 0), line(text, 3)) << "the same seed begins again";
}

TEST_F(InteractiveGenerationTest, Settings) {
  const std::string text =
      answers("/set temperature 0\n/set tokens 3\nAB\n/again\n/set tokens 99\nAB");
  EXPECT_EQ(line(text, 0).size(), 5u);
  EXPECT_EQ(line(text, 0), line(text, 1));
  EXPECT_EQ(line(text, 1), line(text, 2)) << "what is not possible changes nothing";
}

TEST_F(InteractiveGenerationTest, GoesOnAfterMistakes) {
  const std::string text = answers("/again\nABABABABAB\n\n/nothing\nAB\n/quit\nBA\n");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_EQ(text.substr(0, 2), "AB");
}

TEST_F(InteractiveGenerationTest, AnInterruptionEndsTheAnswerOnly) {
  letters_.interrupts = true;
  const std::string text = answers("AB\nBA\n");
  ASSERT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(line(text, 0).size(), 3u) << "one token, then it was ended";
  EXPECT_EQ(line(text, 1).size(), 3u);
}

}  // namespace
}  // namespace bev::app
