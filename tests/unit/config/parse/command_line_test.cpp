#include "unit/config/loading.h"

namespace bev {
namespace {

Config config_of(const Args& args) { return load(args).config; }

TEST(CommandLine, BothSpellingsOfAFlag) {
  const Config config =
      config_of(small_model() + Args{"--model.ffn", "100", "--train.global_batch=8", "--seed=7"});
  EXPECT_EQ(config.model.layers, 2);
  EXPECT_EQ(config.model.ffn, 100);
  EXPECT_EQ(config.train.global_batch, 8);
  EXPECT_EQ(config.train.seed, 7);
}

TEST(CommandLine, IntegersAsPeopleWriteThem) {
  const Config config = config_of(small_model() + Args{"--train-samples", "300_000_000", "--seed",
                                                       "1e6", "--lr-warmup-samples=216_320"});
  EXPECT_EQ(config.train.samples, 300000000);
  EXPECT_EQ(config.train.seed, 1000000);
  EXPECT_EQ(config.optim.warmup_samples, 216320);
}

TEST(CommandLine, NegativeNumbersAreValues) {
  EXPECT_EQ(
      config_of(small_model() + Args{"--optim.start_weight_decay", "-1"}).optim.start_weight_decay,
      -1);
  expect_problem(small_model() + Args{"--seed", "-1"}, {"--seed", "-1 is below", "0 to"});
  expect_problem(small_model() + Args{"--lr", "-1e-3"}, {"--lr", "-0.001 is below"});
}

TEST(CommandLine, BooleansStandAloneOrTakeAWord) {
  EXPECT_TRUE(config_of(small_model() + Args{"--data.mock"}).data.mock);
  EXPECT_TRUE(config_of(Args{"--data.mock"} + small_model()).data.mock);
  EXPECT_TRUE(config_of(small_model() + Args{"--data.mock", "1"}).data.mock);
  EXPECT_FALSE(config_of(small_model() + Args{"--data.mock=false"}).data.mock);
  EXPECT_FALSE(config_of(small_model() + Args{"--model.tied", "0"}).model.tied);
  EXPECT_TRUE(config_of(small_model() + Args{"--mock-data", "true"}).data.mock);
  EXPECT_FALSE(config_of(small_model() + Args{"--mock-data", "false"}).data.mock);
  EXPECT_FALSE(config_of(small_model() + Args{"--untie-embeddings-and-output-weights"}).model.tied);
  EXPECT_TRUE(
      config_of(small_model() + Args{"--untie-embeddings-and-output-weights", "false"}).model.tied);
  expect_problem(small_model() + Args{"--data.mock", "yes"},
                 {"\"yes\"", "after --data.mock", "true"});
  expect_problem(small_model() + Args{"--data.mock=yes"}, {"\"yes\"", "true, false, 1 or 0"});
}

TEST(CommandLine, AFileMayStandBehindABoolean) {
  const TemporaryFile file("[model]\nffn = 96\n");
  const Config config = config_of(small_model() + Args{"--data.mock", file.path()});
  EXPECT_TRUE(config.data.mock);
  EXPECT_EQ(config.model.ffn, 96);
}

TEST(CommandLine, MegatronsWordsForChoices) {
  const Config config = config_of(
      small_model() + Args{"--normalization", "RMSNorm", "--position-embedding-type",
                           "learned_absolute", "--lr-decay-style", "cosine", "--optimizer", "sgd"});
  EXPECT_EQ(config.model.norm, NormKind::RmsNorm);
  EXPECT_EQ(config.model.position, PositionKind::Learned);
  EXPECT_EQ(config.optim.decay, LrDecay::Cosine);
  EXPECT_EQ(config.optim.kind, OptimizerKind::Sgd);
  expect_problem(small_model() + Args{"--normalization", "BatchNorm"},
                 {"--normalization", "\"BatchNorm\"", "LayerNorm or RMSNorm"});
  expect_problem(small_model() + Args{"--model.norm", "RMSNorm"}, {"layernorm or rmsnorm"});
}

// As in Megatron-LM, the order of these flags does not matter.
TEST(CommandLine, FlagsThatRefineOthers) {
  const auto activation = [](const Args& args) {
    return config_of(small_model() + args).model.activation;
  };
  EXPECT_EQ(activation({}), Activation::GeluTanh);
  EXPECT_EQ(activation({"--no-bias-gelu-fusion"}), Activation::GeluErf);
  EXPECT_EQ(activation({"--swiglu", "--no-bias-gelu-fusion"}), Activation::SwiGlu);
  EXPECT_EQ(activation({"--no-bias-gelu-fusion", "--swiglu"}), Activation::SwiGlu);
  EXPECT_EQ(activation({"--openai-gelu", "--no-bias-gelu-fusion"}), Activation::GeluTanh);
  EXPECT_EQ(activation({"--no-bias-gelu-fusion", "--openai-gelu"}), Activation::GeluTanh);
  const auto bias = [](const Args& args) { return config_of(small_model() + args).model.bias; };
  EXPECT_EQ(bias({"--add-qkv-bias"}), BiasKind::All);
  EXPECT_EQ(bias({"--disable-bias-linear"}), BiasKind::None);
  EXPECT_EQ(bias({"--add-qkv-bias", "--disable-bias-linear"}), BiasKind::Qkv);
  EXPECT_EQ(bias({"--disable-bias-linear", "--add-qkv-bias"}), BiasKind::Qkv);
}

TEST(CommandLine, MegatronsRecomputation) {
  const auto method = [](const Args& more) {
    const Config config = config_of(small_model() + Args{"--recompute-granularity", "full"} + more);
    EXPECT_EQ(config.recompute.layers, 2);
    return config.recompute.method;
  };
  const Args two{"--recompute-num-layers", "2"}, old{"--checkpoint-num-layers", "2"};
  EXPECT_EQ(method(two), RecomputeMethod::Block);
  EXPECT_EQ(method(two + Args{"--recompute-method", "block"}), RecomputeMethod::Block);
  EXPECT_EQ(method(two + Args{"--recompute-method", "uniform"}), RecomputeMethod::Uniform);
  // Megatron-LM versions with this flag had no other method.
  EXPECT_EQ(method(old), RecomputeMethod::Uniform);
  EXPECT_EQ(method(Args{"--recompute.method", "block"} + old), RecomputeMethod::Block);
  EXPECT_TRUE(config_of(small_model() +
                        Args{"--checkpoint-activations", "--distribute-checkpointed-activations"})
                  .recompute.distribute);
}

TEST(CommandLine, TheLastOfTwoWins) {
  EXPECT_EQ(
      config_of(small_model() + Args{"--num-layers", "3", "--model.layers", "5"}).model.layers, 5);
}

TEST(CommandLine, FlagsWithoutMeaningAreNoted) {
  const LoadedConfig loaded = load(small_model() + Args{"--use-flash-attn", "--lazy-mpu-init"});
  ASSERT_EQ(loaded.notes.size(), 2u);
  EXPECT_NE(loaded.notes[0].find("--use-flash-attn"), std::string::npos);
  EXPECT_NE(loaded.notes[1].find("--lazy-mpu-init"), std::string::npos);
}

TEST(CommandLine, EarlierNamesOfFieldsAreNotedOnce) {
  const LoadedConfig loaded =
      load(small_model() + Args{"--parallel.silence_seconds", "7", "--device.tune", "--device.tune",
                                "false", "--parallel.engine=gloo"});
  EXPECT_EQ(loaded.config.parallel.heartbeat_warning_seconds, 7);
  EXPECT_FALSE(loaded.config.device.autotune);
  EXPECT_EQ(loaded.config.parallel.backend, CommBackend::Gloo);
  EXPECT_EQ(loaded.notes,
            (std::vector<std::string>{
                "--parallel.silence_seconds is now --parallel.heartbeat_warning_seconds",
                "--device.tune is now --device.autotune",
                "--parallel.engine is now --parallel.backend"}));
  expect_problem(small_model() + Args{"--device.tune", "--device.tune=maybe"},
                 {"--device.tune has an impossible value"});
}

// Every Megatron-LM script sets nccl, even if it runs on a CPU.
TEST(CommandLine, MegatronsBackend) {
  const auto backend = [](const char* name) {
    return config_of(small_model() + Args{"--distributed-backend", name}).parallel.backend;
  };
  EXPECT_EQ(backend("nccl"), CommBackend::Auto);
  EXPECT_EQ(backend("gloo"), CommBackend::Gloo);
  EXPECT_EQ(backend("mpi"), CommBackend::Mpi);
  EXPECT_EQ(config_of(small_model() + Args{"--parallel.backend", "nccl"}).parallel.backend,
            CommBackend::Nccl);
  expect_problem(small_model() + Args{"--distributed-backend", "ucc"}, {"nccl, mpi or gloo"});
}

TEST(CommandLine, AFlagOfSeveralFields) {
  const Config config = config_of(small_model() + Args{"--rampup-batch-size", "2", "2", "1_000",
                                                       "--global-batch-size", "8", "--seed", "3"});
  EXPECT_EQ(config.train.ramp_start, 2);
  EXPECT_EQ(config.train.ramp_increment, 2);
  EXPECT_EQ(config.train.ramp_samples, 1000);
  EXPECT_EQ(config.train.seed, 3);
  expect_problem(small_model() + Args{"--rampup-batch-size", "2", "2", "--seed", "3"},
                 {"--rampup-batch-size has too few values", "2 of 3"});
  expect_problem(small_model() + Args{"--rampup-batch-size", "2", "two", "9"},
                 {"--rampup-batch-size", "\"two\" is not an integer"});
}

TEST(CommandLine, UnknownFlagsNameTheNearest) {
  expect_problem(small_model() + Args{"--modle.ffn", "3"}, {"--modle.ffn", "--model.ffn?"});
  expect_problem(small_model() + Args{"--clip-gard", "3"}, {"--clip-gard", "--clip-grad?"});
  expect_problem(small_model() + Args{"--micro-batch-sise=3"}, {"--micro-batch-size?"});
  expect_problem(small_model() + Args{"--ffn", "3"}, {"--model.ffn?"});
  expect_problem(small_model() + Args{"--entirely-unheard-of"}, {"--help lists"});
  expect_problem(small_model() + Args{"--kind", "3"}, {"--optim.kind or --device.kind?"});
}

TEST(CommandLine, MissingValues) {
  expect_problem(small_model() + Args{"--seed"}, {"--seed has no value", "last argument"});
  expect_problem(small_model() + Args{"--seed", "--data.mock"},
                 {"--seed has no value", "--data.mock follows"});
  expect_problem(small_model() + Args{"--swiglu=1"}, {"--swiglu takes no value"});
  expect_problem(small_model() + Args{"--seed="}, {"\"\" is not an integer"});
}

TEST(CommandLine, WrongTypes) {
  expect_problem(small_model() + Args{"--seed", "many"}, {"\"many\" is not an integer"});
  expect_problem(small_model() + Args{"--seed", "1.5"}, {"1.5 is not a whole number"});
  expect_problem(small_model() + Args{"--lr", "fast"}, {"\"fast\" is not a number"});
  expect_problem(small_model() + Args{"--lr", "nan"}, {"\"nan\" is not a number"});
  expect_problem(small_model() + Args{"--train.output", "a\xFF"}, {"UTF-8"});
  expect_problem(small_model() + Args{"--hidden-dropout", "1.5"}, {"1.5 is above", "0 to 0.999"});
}

TEST(CommandLine, StrayArguments) {
  const TemporaryFile file("");
  expect_problem(small_model() + Args{"stray"}, {"\"stray\"", "NAME.toml"});
  expect_problem(Args{file.path()} + small_model() + Args{"other.toml"},
                 {"two configuration files", "other.toml"});
  expect_problem(small_model() + Args{""}, {"an empty argument"});
  expect_problem(small_model() + Args{"-x"}, {"\"-x\""});
  expect_problem(small_model() + Args{"--"}, {"\"--\""});
}

TEST(CommandLine, AVerbsWordForAField) {
  constexpr VerbFlag kOwn[] = {{"--world-size", "N", "ranks", "parallel.ranks"}};
  const LoadedConfig loaded = load(small_model() + Args{"--world-size", "4"}, kOwn);
  EXPECT_EQ(loaded.config.parallel.ranks, 4);
  EXPECT_EQ(loaded.origins.at("parallel.ranks").text, "--world-size");
  const Args pipeline{"--pipeline-model-parallel-size", "2", "--world-size"};
  for (const auto& [count, part] :
       {std::pair{"0", "1 to 1,048,576"}, {"3", "--world-size 2 or 4"}}) {
    const auto problems = problems_of(small_model() + pipeline + Args{count}, Purpose::Plan, kOwn);
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_TRUE(mentions(problems[0], part)) << report(problems);
  }
}

TEST(CommandLine, AValueThatMayBeLeftOut) {
  constexpr VerbFlag kOwn[] = {{"--timeline", "[FILE]", "draw"}, {"--json", "", "as JSON"}};
  const TemporaryFile file("[model]\nlayers = 3\n");
  const auto value = [&](const Args& args) {
    const LoadedConfig loaded = load(small_model() + args, kOwn);
    EXPECT_TRUE(loaded.has("--timeline"));
    return loaded.own_text("--timeline");
  };
  EXPECT_EQ(value({"--timeline", "a.svg"}), "a.svg");
  EXPECT_EQ(value({"--timeline=a.svg"}), "a.svg");
  EXPECT_EQ(value({"--timeline"}), "");
  EXPECT_EQ(value({"--timeline", "--json"}), "");
  // A configuration file is not taken as the value of the flag.
  EXPECT_EQ(value({"--timeline", file.path()}), "");
}

TEST(CommandLine, FlagsOfTheVerb) {
  constexpr VerbFlag kOwn[] = {{"--json", "FILE", "write JSON"},
                               {"--dry-run", "", "do nothing"},
                               {"--floor", "X", "least speed"}};
  const LoadedConfig loaded =
      load(small_model() + Args{"--json", "out.json", "--dry-run", "--floor=-2"}, kOwn);
  EXPECT_EQ(loaded.own_text("--json"), "out.json");
  EXPECT_TRUE(loaded.has("--dry-run"));
  EXPECT_EQ(own_integer(loaded, "--floor", 0, -5, 5), -2);
  EXPECT_THROW(own_integer(loaded, "--floor", 0, 0, 5), Error);
  EXPECT_EQ(own_integer(loaded, "--absent", 9, 0, 5), 9);
  EXPECT_EQ(loaded.own_text("--absent", "x"), "x");
  const auto problems = problems_of(small_model() + Args{"--dry-rum"}, Purpose::Plan, kOwn);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_TRUE(mentions(problems[0], "--dry-run?"));
}

// A command line of the 2019 repository and one of the JUWELS benchmark, less what is not
// available.
TEST(CommandLine, WholeMegatronCommands) {
  const Config gpt2 = load(Args{"--num-layers",
                                "24",
                                "--hidden-size",
                                "1024",
                                "--num-attention-heads",
                                "16",
                                "--batch-size",
                                "8",
                                "--seq-length",
                                "1024",
                                "--max-position-embeddings",
                                "1024",
                                "--train-iters",
                                "320000",
                                "--vocab-size",
                                "50257",
                                "--mock-data",
                                "--tokenizer-type",
                                "GPT2BPETokenizer",
                                "--split",
                                "949,50,1",
                                "--distributed-backend",
                                "nccl",
                                "--lr",
                                "0.00015",
                                "--lr-decay-style",
                                "cosine",
                                "--weight-decay",
                                "1e-2",
                                "--clip-grad",
                                "1.0",
                                "--warmup",
                                ".01",
                                "--checkpoint-activations"},
                           {}, Purpose::Train)
                          .config;
  EXPECT_EQ(gpt2.train.micro_batch, 8);
  EXPECT_EQ(gpt2.optim.warmup_fraction, 0.01);
  EXPECT_EQ(gpt2.recompute.granularity, Recompute::Full);

  const Config juwels = load(Args{"--num-layers",
                                  "40",
                                  "--hidden-size",
                                  "5120",
                                  "--ffn-hidden-size",
                                  "20480",
                                  "--num-attention-heads",
                                  "32",
                                  "--micro-batch-size",
                                  "1",
                                  "--global-batch-size",
                                  "1024",
                                  "--seq-length",
                                  "2048",
                                  "--max-position-embeddings",
                                  "2048",
                                  "--vocab-size",
                                  "50257",
                                  "--optimizer",
                                  "adam",
                                  "--adam-beta1",
                                  "0.9",
                                  "--adam-beta2",
                                  "0.999",
                                  "--adam-eps",
                                  "1e-8",
                                  "--lr",
                                  "1e-4",
                                  "--min-lr",
                                  "1e-5",
                                  "--lr-decay-style",
                                  "cosine",
                                  "--lr-decay-samples",
                                  "126_953_125",
                                  "--lr-warmup-samples",
                                  "216_320",
                                  "--clip-grad",
                                  "1.0",
                                  "--weight-decay",
                                  "1e-1",
                                  "--use-distributed-optimizer",
                                  "--train-samples",
                                  "300_000_000",
                                  "--loss-scale-window",
                                  "500",
                                  "--hysteresis",
                                  "2",
                                  "--min-loss-scale",
                                  "1.0",
                                  "--initial-loss-scale",
                                  "4096",
                                  "--seed",
                                  "42",
                                  "--position-embedding-type",
                                  "rope",
                                  "--use-flash-attn",
                                  "--recompute-activations",
                                  "--recompute-granularity",
                                  "selective",
                                  "--log-interval",
                                  "10",
                                  "--bf16",
                                  "--mock-data"},
                             {}, Purpose::Train)
                            .config;
  EXPECT_EQ(juwels.optim.decay_samples, 126953125);
  EXPECT_EQ(juwels.device.precision, Precision::Bf16);
  EXPECT_EQ(juwels.recompute.granularity, Recompute::Selective);
}

}  // namespace
}  // namespace bev
