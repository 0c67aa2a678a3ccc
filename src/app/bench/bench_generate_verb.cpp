#include <array>

#include "app/bench/bench_verbs.h"
#include "app/cli/cli_flags.h"
#include "app/cli/shared_flags.h"
#include "base/check.h"
#include "bench/generation_bench.h"
#include "config/parse/load.h"

namespace bev::app {

namespace {

constexpr std::array<VerbFlag, 10> kBenchGenerateFlags{{
    {"--preset", "NAME", "a published shape with fresh weights, instead of DIR"},
    {"--batch", "N", "texts at a time [default: 1]"},
    {"--prompt", "N", "tokens of each prompt [default: 128]"},
    {"--tokens", "N", "new tokens of each text [default: 256]"},
    {"--page", "N", "tokens of a page of the cache [default: 64]"},
    {"--runs", "N", "how often it is measured [default: 3]"},
    kThreadsFlag,
    kDeviceFlag,
    kPrecisionFlag,
    {"--json", "", "print JSON instead of a table"},
}};

ModelFolder fresh_model(const std::string& preset) {
  const std::vector<std::string> args{"--model.preset", preset, "--train.micro_batch", "1"};
  ModelFolder folder;
  folder.config = load(args).config;
  folder.config.model.hidden_dropout = folder.config.model.attention_dropout = 0;
  folder.is_fresh = true;
  return folder;
}

}  // namespace

int bench_generate(std::span<const std::string> args) {
  const auto flags = flags_for(
      {.name = "bench generate",
       .summary =
           "Times how a model takes prompts and makes tokens, against what reading its weights "
           "costs. DIR is the folder of a `bevatron train`, one of its checkpoints or a "
           "Hugging Face model.",
       .flags = kBenchGenerateFlags,
       .positional = "[DIR]",
       .max_positional = 1},
      args);
  if (!flags) return 0;
  BEV_CHECK(flags->has("--preset") != !flags->positional().empty(), Usage,
            "bench generate: name a model, either DIR or --preset NAME");
  const ModelFolder folder = flags->has("--preset")
                                 ? fresh_model(flags->text("--preset"))
                                 : open_model_folder(flags->positional().front());
  require_causal(folder, "bench generate");
  const GenerationBench bench =
      bench_generation(folder, device_from_flags(*flags),
                       {.batch = flags->integer("--batch", 1, 1, 65536),
                        .prompt = flags->integer("--prompt", 128, 1, 1 << 24),
                        .tokens = flags->integer("--tokens", 256, 2, 1 << 24),
                        .page = flags->integer("--page", 64, 1, 1 << 24),
                        .runs = flags->integer("--runs", 3, 1, 1000)});
  fmt::print("{}", flags->has("--json") ? generation_bench_json(bench) + "\n"
                                        : generation_bench_table(bench));
  return 0;
}

}  // namespace bev::app
