#include "app/cli/dispatch.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "app/cli/verb_config.h"
#include "base/error.h"

namespace bev::app {
namespace {

using Args = std::vector<std::string>;

constexpr std::array kVerbs{
    Verb{"train", "trains",
         [](std::span<const std::string> args) { return 10 + static_cast<int>(args.size()); }},
    Verb{"plan", "plans",
         [](std::span<const std::string>) -> int { throw Error(ErrorKind::Data, "no file"); }},
    Verb{"version", "the version", [](std::span<const std::string>) { return 30; }},
};

int run(const Args& args) { return dispatch(kVerbs, args); }

TEST(Dispatch, GivesTheRestToTheVerb) {
  EXPECT_EQ(run({"train"}), 10);
  EXPECT_EQ(run({"train", "a", "b"}), 12);
  EXPECT_EQ(run({"version"}), 30);
  EXPECT_EQ(run({"--version"}), 30);
  EXPECT_THROW(run({"plan"}), Error);
}

TEST(Dispatch, NoVerbIsWrongUsage) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run({}), 2);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("usage: bevatron train | plan"),
            std::string::npos);
}

TEST(Dispatch, HelpIsAnOverviewOrTheVerbs) {
  for (const Args& args : {Args{"help"}, Args{"--help"}, Args{"-h"}, Args{"help", "help"}}) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(run(args), 0);
    const std::string text = testing::internal::GetCapturedStdout();
    EXPECT_NE(text.find("trains"), std::string::npos);
    EXPECT_NE(text.find("Exit codes"), std::string::npos);
  }
  EXPECT_EQ(run({"help", "train"}), 11);  // train --help
}

TEST(Dispatch, PagesThatNeedTheWholeTable) {
  const auto printed = [](const Args& args) {
    testing::internal::CaptureStdout();
    EXPECT_EQ(run(args), 0);
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(printed({"help", "configuration"}).find("# Configuration\n"), 0u);
  EXPECT_NE(printed({"completion", "bash"}).find("verbs=\"train plan version"), std::string::npos);
  for (const Args& args : {Args{"completion", "--help"}, Args{"help", "completion"}})
    EXPECT_EQ(printed(args).find("usage: bevatron completion bash | zsh"), 0u);
  EXPECT_THROW(run({"completion"}), Error);
}

TEST(Dispatch, UnknownVerbsNameTheNearest) {
  try {
    run({"trian"});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::Usage);
    EXPECT_EQ(std::string(error.what()), "there is no verb \"trian\"; did you mean train?");
  }
  try {
    run({"something else"});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("train, plan, version, help"), std::string::npos);
  }
}

TEST(Dispatch, HelpTakesOneVerbOrTopic) {
  const auto message = [](const Args& args) {
    try {
      run(args);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind, ErrorKind::Usage);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message({"help", "mann"}), "there is no verb \"mann\"; did you mean man?");
  EXPECT_EQ(message({"help", "configuratoin"}),
            "there is no verb \"configuratoin\"; did you mean configuration?");
  for (const char* first : {"man", "train", "help", "configuration", "completion"})
    EXPECT_EQ(message({"help", first, "extra"})
                  .find("help takes at most one argument, but "
                        "\"extra\" is given after"),
              0u)
        << first;
}

constexpr VerbFlag kOwn[] = {{"--dry-run", "", "plan and stop"}, {"--json", "FILE", "results"}};
const ConfigVerb kTrain{"train", "Trains a model.", kOwn, Purpose::Train};

TEST(VerbConfig, HelpCoversOwnFlagsAndFields) {
  const std::string text = help_text(kTrain, 80);
  for (const char* wanted : {"usage: bevatron train", "--dry-run", "--json FILE", "--print-config",
                             "--model.layers N", "--num-layers", "[optim]"})
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted;
  testing::internal::CaptureStdout();
  EXPECT_FALSE(config_for(kTrain, Args{"--nonsense", "--help"}));
  EXPECT_FALSE(testing::internal::GetCapturedStdout().empty());
}

TEST(VerbConfig, PrintConfigPrintsAndStops) {
  const Args args{
      "--model.preset", "gpt2-124m",   "--micro-batch-size", "1", "--train-iters", "3", "--lr",
      "1e-3",           "--mock-data", "--print-config"};
  testing::internal::CaptureStdout();
  EXPECT_FALSE(config_for(kTrain, args));
  EXPECT_NE(testing::internal::GetCapturedStdout().find("layers = 12"), std::string::npos);
  EXPECT_THROW(config_for(kTrain, Args{"--print-config"}), Error);
}

TEST(VerbConfig, GivesConfigurationOwnFlagsAndNotes) {
  const Args args{"--model.preset",
                  "gpt2-124m",
                  "--micro-batch-size",
                  "1",
                  "--train-iters",
                  "3",
                  "--lr",
                  "1e-3",
                  "--mock-data",
                  "--json",
                  "x",
                  "--use-flash-attn"};
  testing::internal::CaptureStderr();
  const auto loaded = config_for(kTrain, args);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("bevatron: note: --use-flash-attn"),
            std::string::npos);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->own_text("--json"), "x");
  EXPECT_FALSE(loaded->has("--dry-run"));
  EXPECT_EQ(loaded->config.train.iterations, 3);
}

}  // namespace
}  // namespace bev::app
