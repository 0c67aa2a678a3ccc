#include "config/parse/load.h"

#include "config/parse/field.h"
#include "unit/config/loading.h"

namespace bev {
namespace {

TEST(Load, PrecedenceWhateverTheOrder) {
  const TemporaryFile file(
      "[model]\npreset = \"gpt2-124m\"\nheads = 6\nwidth = 384\n[train]\nmicro_batch = 4\n");
  for (const Args& args :
       {Args{file.path(), "--model.width", "96"}, Args{"--model.width", "96", file.path()}}) {
    const LoadedConfig loaded = load(args);
    EXPECT_EQ(loaded.config.model.layers, 12);  // preset
    EXPECT_EQ(loaded.config.model.heads, 6);    // file over preset
    EXPECT_EQ(loaded.config.model.width, 96);   // flag over file
    EXPECT_EQ(loaded.config.train.seed, 1234);  // default
    EXPECT_EQ(loaded.origins.at("model.layers").text, "preset gpt2-124m");
    EXPECT_EQ(loaded.origins.at("model.heads").text, file.path() + ":3");
    EXPECT_EQ(loaded.origins.at("model.width").text, "--model.width");
    EXPECT_EQ(loaded.origins.at("model.width").kind, OriginKind::Flag);
    EXPECT_EQ(loaded.origins.count("train.seed"), 0u);
  }
}

TEST(Load, ThePresetOfTheCommandLineWins) {
  const TemporaryFile file("[model]\npreset = \"gpt2-124m\"\n[train]\nmicro_batch = 4\n");
  const LoadedConfig loaded = load(Args{file.path(), "--model.preset", "gpt2-774m"});
  EXPECT_EQ(loaded.config.model.layers, 36);
  EXPECT_EQ(loaded.config.model.preset, "gpt2-774m");
  EXPECT_EQ(load(Args{file.path(), "--model.preset", ""} + small_model()).config.model.layers, 2);
}

TEST(Load, RefiningFlagsSeeTheFileAndThePreset) {
  const TemporaryFile file("[model]\nactivation = \"swiglu\"\nbias = \"none\"\n");
  const Config config =
      load(Args{file.path(), "--no-bias-gelu-fusion", "--add-qkv-bias"} + small_model()).config;
  EXPECT_EQ(config.model.activation, Activation::SwiGlu);
  EXPECT_EQ(config.model.bias, BiasKind::Qkv);
}

TEST(Load, AllProblemsInOneReport) {
  const TemporaryFile file("[model]\nwidht = 100\nheads = 7\n[train]\nsequence = \"long\"\n");
  const Args args{
      file.path(), "--num-layers", "0",   "--micro-batch-size", "4",   "--global-batch-size",
      "6",         "--vocab-sise", "100", "--device",           "null"};
  try {
    load(args);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind, ErrorKind::Usage);
    const std::string text = error.what();
    // The misspelt, the refused and the divided; nothing about width or vocab being missing.
    EXPECT_NE(text.find("6 problems"), std::string::npos) << text;
    for (const char* wanted : {"widht", "did you mean width?", "run.toml:2", "run.toml:5",
                               "--num-layers 0", "--vocab-sise", "--vocab-size?", "global batch 6",
                               "the null device runs nothing", "\n6. "})
      EXPECT_NE(text.find(wanted), std::string::npos) << wanted << " is not in\n" << text;
    EXPECT_EQ(text.find("missing"), std::string::npos) << text;
  }
}

TEST(Load, AFileThatCannotBeParsedMakesNothingMissing) {
  const TemporaryFile file("[model\n");
  const auto problems = problems_of({file.path()});
  ASSERT_EQ(problems.size(), 1u) << report(problems);
  EXPECT_TRUE(mentions(problems[0], "not valid TOML"));
}

TEST(Load, UnknownPresets) {
  expect_problem({"--model.preset", "gpt2-345", "--micro-batch-size", "1"}, {"gpt2-345m?"});
  expect_problem({"--model.preset", "my very own model", "--micro-batch-size", "1"},
                 {"one of:", "gpt2-124m", "llama3-70b"});
}

TEST(Load, NothingGivenNamesAllThatIsMissing) {
  const auto problems = problems_of({}, Purpose::Train);
  std::string text = report(problems);
  for (const char* wanted : {"model.layers", "model.width", "model.heads", "model.vocab",
                             "train.sequence", "train.micro_batch", "train.iterations", "optim.lr"})
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted;
  EXPECT_EQ(problems.size(), 9u) << text;
  EXPECT_TRUE(problems_of(small_training(), Purpose::Train).empty());
}

TEST(Load, ReportHasANumberedBlockPerProblem) {
  const std::vector<Problem> problems{{"one thing", "here", "12 / 5 leaves 2", "10 or 15"},
                                      {"another", "there", "", "7"}};
  EXPECT_EQ(report(problems),
            "2 problems in the configuration\n\n"
            "1. one thing\n   where: here\n   why:   12 / 5 leaves 2\n   legal: 10 or 15\n\n"
            "2. another\n   where: there\n   legal: 7");
}

}  // namespace
}  // namespace bev
