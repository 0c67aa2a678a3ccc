#include <random>

#include "config/parse/field.h"
#include "config/parse/help.h"
#include "config/parse/toml.h"
#include "unit/config/loading.h"
#include "unit/config/random_config.h"

namespace bev {
namespace {

void expect_same(const Config& a, const Config& b) {
  for (const Field& field : fields())
    EXPECT_EQ(get_value(a, field.path), get_value(b, field.path)) << field.path;
}

TEST(PrintConfig, LoadsAgainToTheSame) {
  const LoadedConfig loaded =
      load(Args{"--model.preset", "llama2-7b", "--micro-batch-size", "3", "--lr", "0.1", "--min-lr",
                "3.3333333333333335e-05", "--train.output", "a \"b\" \\ \xC3\xA9 # [x]\n\t",
                "--seed", "9e18", "--adam-eps", "1e-300", "--recompute-granularity", "full"});
  const std::string text = print_config(loaded.config, loaded.origins);
  const TemporaryFile file(text);
  const LoadedConfig again = load(Args{file.path()});
  expect_same(loaded.config, again.config);
  EXPECT_EQ(print_config(again.config), print_config(loaded.config));
}

TEST(PrintConfig, SaysWhereEachValueCameFrom) {
  const TemporaryFile file("[train]\nmicro_batch = 3\n");
  const LoadedConfig loaded =
      load(Args{file.path(), "--model.preset", "gpt2-124m", "--hidden-dropout=0"});
  const std::string text = print_config(loaded.config, loaded.origins);
  const auto line = [&](const std::string& key) {
    const size_t begin = text.find("\n" + key + " = ");
    return begin == std::string::npos
               ? ""
               : text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
  };
  EXPECT_NE(line("layers").find("layers = 12 "), std::string::npos);
  EXPECT_NE(line("layers").find("# preset gpt2-124m"), std::string::npos);
  EXPECT_NE(line("micro_batch").find("run.toml:2"), std::string::npos);
  EXPECT_NE(line("hidden_dropout").find("# --hidden-dropout"), std::string::npos);
  EXPECT_NE(line("seed").find("# default"), std::string::npos);
}

TEST(PrintConfig, HasEveryField) {
  const std::string text = print_config(Config{});
  for (const Field& field : fields())
    EXPECT_NE(text.find("\n" + std::string(field.key()) + " = "), std::string::npos) << field.path;
}

// The rules are not asked.
TEST(PrintConfig, AnyLegalValueSurvives) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    Config config = random_config(random);
    // Loading decides what auto means.
    if (config.device.kind == DeviceKind::Auto) config.device.kind = DeviceKind::Cpu;
    config.model.preset.clear();
    config.data.tokenizer = TokenizerKind::External;  // others fill in what they know
    const TemporaryFile file(print_config(config));
    Findings findings;
    const Args args{file.path()};
    const Config again = load_unchecked(args, {}, Purpose::Plan, findings).config;
    EXPECT_TRUE(findings.doubtful.empty());
    expect_same(config, again);
  }
}

TEST(Help, NamesEveryFieldAndAliasWithinTheWidth) {
  for (const size_t columns : {60u, 80u, 100u}) {
    const std::string help = fields_help(columns);
    for (const Field& field : fields()) {
      EXPECT_NE(help.find("--" + field.path), std::string::npos) << field.path;
      for (const Alias& alias : field.about.aliases)
        EXPECT_NE(help.find(alias.flag), std::string::npos) << alias.flag;
    }
    size_t begin = 0;
    while (begin < help.size()) {
      const size_t end = std::min(help.find('\n', begin), help.size());
      EXPECT_LE(end - begin, columns) << help.substr(begin, end - begin);
      EXPECT_TRUE(end == begin || help[end - 1] != ' ') << help.substr(begin, end - begin);
      begin = end + 1;
    }
  }
}

TEST(Help, SaysDefaultRangeAndChoices) {
  const std::string help = fields_help(80);
  EXPECT_NE(help.find("[1 to 100,000; must be given]"), std::string::npos);
  EXPECT_NE(help.find("[layernorm or rmsnorm; default: layernorm]"), std::string::npos);
  EXPECT_NE(help.find("[0 to 0.999; default: 0.1]"), std::string::npos);
  EXPECT_NE(help.find("also --use-rope-scaling (= llama3)"), std::string::npos);
}

TEST(Help, Wrap) {
  EXPECT_EQ(wrap("one two three four five six", 22, 2), "one two three four\n  five six");
  EXPECT_EQ(wrap("", 80, 4), "");
  EXPECT_EQ(wrap("averyveryverylongwordthatdoesnotfit x", 20, 0),
            "averyveryverylongwordthatdoesnotfit\nx");
}

}  // namespace
}  // namespace bev
