#include "app/generate/generation_prompts.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/expect_error.h"
#include "support/marked_bytes.h"
#include "support/temporary_directory.h"
#include "text/tokenizer.h"

namespace bev::app {
namespace {

using test::expect_error;
using Args = std::vector<std::string>;
using Ids = std::vector<int32_t>;

constexpr std::array kPromptFlags{
    kPromptFlag,         kPromptFileFlag,   kPromptIdsFlag,   kSampleInputFlag, kTokensFlag,
    kMegatronTokensFlag, kGreedyFlag,       kTemperatureFlag, kTopKFlag,        kTopPFlag,
    kMegatronTopKFlag,   kMegatronTopPFlag, kMinPFlag,        kRepetitionFlag,  kSeedFlag,
    kStopFlag,           kIgnoreEodFlag,    kContextFlag,     kLogprobsFlag};
constexpr VerbSpec kGenerateVerb{
    .name = "generate", .summary = "Generates.", .flags = kPromptFlags};

FlagValues flags(const Args& args) { return {kGenerateVerb, args}; }

// Eight positions, a vocabulary of bytes.
ModelFolder folder() {
  ModelFolder folder;
  folder.config.model.position = PositionKind::Learned;
  folder.config.model.positions = 8;
  folder.config.model.vocab = 257;
  folder.config.train.sequence = 6;
  folder.config.data.eod = kByteEod;
  return folder;
}

GenerationSettings settings(const Args& args) { return generation_settings(flags(args), folder()); }

Prompt of_ids(size_t count) { return {.name = "the prompt", .ids = Ids(count, 1)}; }

TEST(GenerationSettings, AsUsual) {
  const GenerationSettings s = settings({});
  EXPECT_EQ(s.choice.temperature, 1);
  EXPECT_EQ(s.choice.top_k, 0);
  EXPECT_EQ(s.choice.top_p, 1);
  EXPECT_EQ(s.tokens, std::nullopt);
  EXPECT_EQ(s.context, 6);
  EXPECT_EQ(s.most_context, 8);
  EXPECT_EQ(s.seed, 1234u);
  EXPECT_EQ(s.end, kByteEod);
}

TEST(GenerationSettings, BothSpellings) {
  EXPECT_EQ(settings({"--top_k", "5", "--top_p", "0.5", "--out-seq-length", "3"}).choice.top_k, 5);
  EXPECT_EQ(settings({"--top-p", "0.5"}).choice.top_p, 0.5);
  EXPECT_EQ(settings({"--top_p", "0"}).choice.top_p, 1) << "0 leaves nothing out";
  EXPECT_EQ(settings({"--out-seq-length", "3"}).tokens, 3);
  EXPECT_EQ(settings({"--greedy"}).choice.temperature, 0);
  EXPECT_EQ(settings({"--ignore-eod"}).end, -1);
  expect_error(ErrorKind::Usage, "exclude each other",
               [] { settings({"--top-k", "1", "--top_k", "1"}); });
  expect_error(ErrorKind::Usage, "exclude each other",
               [] { settings({"--greedy", "--temperature", "1"}); });
}

TEST(GenerationSettings, Refusals) {
  expect_error(ErrorKind::Usage, "from 0 to 1", [] { settings({"--top-p", "1.5"}); });
  expect_error(ErrorKind::Usage, "from 1 to 8", [] { settings({"--context", "9"}); });
  expect_error(ErrorKind::Usage, "at least one character", [] { settings({"--stop", ""}); });
  expect_error(ErrorKind::Usage, "--logprobs", [] { settings({"--tokens", "0"}); });
  EXPECT_EQ(settings({"--tokens", "0", "--logprobs"}).tokens, 0);
}

TEST(GenerationSettings, Change) {
  GenerationSettings s = settings({});
  EXPECT_EQ(change_setting(s, "temperature", "0.8"), "");
  EXPECT_EQ(change_setting(s, "top-k", "40"), "");
  EXPECT_EQ(change_setting(s, "tokens", "6"), "");
  EXPECT_EQ(change_setting(s, "seed", "7"), "");
  EXPECT_EQ(s.choice.temperature, 0.8);
  EXPECT_EQ(s.choice.top_k, 40);
  EXPECT_EQ(s.tokens, 6);
  EXPECT_EQ(s.seed, 7u);
  EXPECT_NE(settings_text(s).find("0.8\n"), std::string::npos);
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"temperature", "-1"},
                                                        {"temperature", "hot"},
                                                        {"top-k", "1.5"},
                                                        {"top-p", "2"},
                                                        {"tokens", "7"},
                                                        {"tokens", "0"},
                                                        {"seed", "-1"},
                                                        {"repetition-penalty", "0"}})
    EXPECT_NE(change_setting(s, name, value), "") << name << value;
  EXPECT_EQ(s.choice.temperature, 0.8);
  EXPECT_NE(change_setting(s, "temprature", "1").find("did you mean temperature?"),
            std::string::npos);
}

TEST(GenerationPrompts, OneSource) {
  expect_error(ErrorKind::Usage, "exclude each other",
               [] { named_prompts(flags({"--prompt", "a", "--prompt-ids", "1"})); });
  expect_error(ErrorKind::Usage, "exclude each other",
               [] { named_prompts(flags({"--prompt-file", "a", "--sample-input-file", "b"})); });
  EXPECT_EQ(named_prompts(flags({"--prompt-ids", "1"})), std::nullopt);
  EXPECT_EQ(named_prompts(flags({"--prompt-file", "-"})), std::nullopt);
  EXPECT_TRUE(reads_stdin(flags({"--prompt-file", "-"})));
  EXPECT_EQ(named_prompts(flags({"--prompt", "one\n"}))->front().text, "one\n");
  EXPECT_EQ(named_prompts(flags({}))->front().text, "");
}

TEST(GenerationPrompts, Files) {
  const test::TemporaryDirectory dir;
  const std::string path = (dir.path() / "p.txt").string();
  AtomicFile file(path);
  file.write("one\n\ntwo\r\nthree");
  file.commit();
  const auto whole = named_prompts(flags({"--prompt-file", path}));
  EXPECT_EQ(whole->front().text, "one\n\ntwo\r\nthree");
  const auto lines = named_prompts(flags({"--sample-input-file", path}));
  ASSERT_EQ(lines->size(), 4u);
  EXPECT_EQ(lines->at(0).text, "one");
  EXPECT_EQ(lines->at(1).text, "");
  EXPECT_EQ(lines->at(2).text, "two");
  EXPECT_EQ(lines->at(3).text, "three");
  EXPECT_NE(lines->at(3).name.find("line 4 of"), std::string::npos);
  EXPECT_EQ(stdin_prompt("one\n\n").text, "one\n");
  EXPECT_EQ(stdin_prompt("\n").text, "");
  expect_error(ErrorKind::Data, "stdin is empty", [] { stdin_prompt(""); });
}

TEST(GenerationPrompts, Encoding) {
  ByteTokenizer bytes;
  Prompt prompt{.name = "p", .text = "ab"};
  encode_prompt(prompt, folder(), &bytes);
  EXPECT_EQ(prompt.ids, (Ids{kByteEod, 'a', 'b'}));
  test::MarkedBytes marked;
  Prompt begins{.name = "p", .text = "ab"};
  encode_prompt(begins, folder(), &marked);
  EXPECT_EQ(begins.ids, (Ids{test::kByteBegin, 'a', 'b'}))
      << "one beginning is enough, and it goes on";
  Prompt text{.name = "p", .text = "ab"}, nothing{.name = "p"};
  expect_error(ErrorKind::Usage, "--prompt-ids", [&] { encode_prompt(text, folder(), nullptr); });
  ModelFolder endless = folder();
  endless.config.data.eod = -1;
  expect_error(ErrorKind::Usage, "nothing to continue",
               [&] { encode_prompt(nothing, endless, &bytes); });
}

TEST(GenerationPrompts, WhatFits) {
  EXPECT_EQ(request_for(of_ids(2), settings({}), 0).tokens, 4) << "what fits";
  EXPECT_EQ(request_for(of_ids(2), settings({"--tokens", "4"}), 0).tokens, 4);
  EXPECT_EQ(request_for(of_ids(5), settings({}), 0).tokens, 1);
  EXPECT_EQ(request_for(of_ids(6), settings({"--tokens", "0", "--logprobs"}), 0).tokens, 0);
  const GenerationRequest request = request_for(of_ids(2), settings({"--logprobs"}), 3);
  EXPECT_EQ(request.sample, 3);
  EXPECT_TRUE(request.score_prompt);
  expect_error(ErrorKind::Usage, "--tokens up to 4, or a larger --context",
               [] { request_for(of_ids(2), settings({"--tokens", "5"}), 0); });
  expect_error(ErrorKind::Usage,
               "has 6 tokens, but the model sees at most 6; legal: at most 5 tokens",
               [] { request_for(of_ids(6), settings({}), 0); });
  const std::string full = expect_error(ErrorKind::Usage, "--tokens up to 6", [] {
    request_for(of_ids(2), settings({"--tokens", "7", "--context", "8"}), 0);
  });
  EXPECT_EQ(full.find("larger"), std::string::npos);
}

TEST(GenerationPrompts, LongModelsStopAt256) {
  ModelFolder rope = folder();
  rope.config.model.position = PositionKind::Rope;
  rope.config.model.positions = 0;
  rope.config.train.sequence = 1000;
  EXPECT_EQ(request_for(of_ids(2), generation_settings(flags({}), rope), 0).tokens, 256);
  EXPECT_EQ(request_for(of_ids(900), generation_settings(flags({}), rope), 0).tokens, 100);
}

}  // namespace
}  // namespace bev::app
