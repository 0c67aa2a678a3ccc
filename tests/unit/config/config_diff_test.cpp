#include "config/config_diff.h"

#include "config/parse/field.h"
#include "support/expect_error.h"
#include "unit/config/loading.h"
#include "unit/config/random_config.h"

namespace bev {
namespace {

using test::expect_error;

Config loaded(const Args& more = {}) { return load(small_training() + more).config; }

ConfigDiff between(const Config& before, const Config& now) {
  return diff_config(stored_config(before), now, "out/step-10");
}

ConfigDiff after_flags(const Args& more) { return between(loaded(), loaded(more)); }

// What the flags change, with its effect; nothing else changes.
void expect_changes(const Args& more, const std::vector<std::string>& texts, Effect effect) {
  const ConfigDiff diff = after_flags(more);
  ASSERT_EQ(diff.changes.size(), texts.size()) << describe(diff);
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(diff.changes[i].text(), texts[i]);
    EXPECT_EQ(diff.changes[i].effect, effect) << texts[i];
  }
}

TEST(Resume, TheSameConfigurationHasNoDifference) {
  const ConfigDiff diff = after_flags({});
  EXPECT_TRUE(diff.changes.empty() && diff.unknown.empty());
  EXPECT_EQ(describe(diff), "");
  require_resumable(diff, {}, "out/step-10");
}

TEST(Resume, ChangesHaveTheEffectOfTheirFields) {
  expect_changes({"--adam-beta2", "0.95"}, {"optim.beta2 = 0.95 (was 0.999)"}, Effect::Numerics);
  expect_changes({"--num-layers", "4"}, {"model.layers = 4 (was 2)"}, Effect::Model);
  expect_changes({"--log-interval", "5"}, {"train.log_interval = 5 (was 100)"}, Effect::Runtime);
  expect_changes({"--save", "x"}, {"checkpoint.save = \"x\" (was \"\")"}, Effect::Runtime);
  expect_changes({"--train-iters", "200"}, {"train.iterations = 200 (was 100)"}, Effect::Runtime);
  expect_changes({"--parallel.ranks", "2", "--tensor-model-parallel-size", "2"},
                 {"parallel.ranks = 2 (was 1)", "parallel.tensor = 2 (was 1)"}, Effect::Layout);
  expect_changes(
      {"--data.mock=false", "--data-path", "0.3", "a", "0.7", "b"},
      {"data.path = [\"0.3\", \"a\", \"0.7\", \"b\"] (was [])", "data.mock = false (was true)"},
      Effect::Numerics);
}

TEST(Resume, TheEffectsThatMatter) {
  const std::pair<Effect, std::vector<std::string_view>> effects[] = {
      {Effect::Model,
       {"model.layers", "model.width", "model.heads", "model.kv_heads", "model.head_dim",
        "model.ffn", "model.vocab", "model.norm", "model.activation", "model.position",
        "model.bias", "model.tied", "model.qk_norm"}},
      {Effect::Numerics,
       {"model.rope_base", "model.window", "model.hidden_dropout", "train.global_batch",
        "train.sequence", "train.seed", "data.path", "data.train_path", "data.split", "data.order",
        "optim.kind", "optim.beta1", "optim.clip", "loss.label_smoothing", "device.precision"}},
      {Effect::Layout,
       {"model.vocab_multiple", "parallel.ranks", "parallel.tensor", "parallel.pipeline",
        "parallel.context", "parallel.sequence", "parallel.zero"}},
      {Effect::Runtime,
       {"model.preset", "model.init_std", "train.micro_batch", "train.iterations", "train.output",
        "train.exit_interval", "train.exit_minutes", "recompute.granularity", "device.kind",
        "device.threads", "device.autotune", "device.graphs", "eval.interval",
        "parallel.backend"}}};
  for (const auto& [effect, paths] : effects)
    for (const std::string_view path : paths) {
      ASSERT_NE(find_field(path), nullptr) << path;
      EXPECT_EQ(find_field(path)->about.effect, effect) << path;
    }
  for (const Field& field : fields()) {
    if (field.section() == "checkpoint" || field.section() == "log") {
      EXPECT_EQ(field.about.effect, Effect::Runtime) << field.path;
    }
  }
}

TEST(Resume, WhatFollowsFromOthersIsNoDifference) {
  EXPECT_EQ(describe(after_flags({"--model.kv_heads", "4", "--kv-channels", "16",
                                  "--ffn-hidden-size", "256", "--max-position-embeddings", "128",
                                  "--global-batch-size", "2", "--device.precision", "f32"})),
            "");
}

// An import names both sides of a T5.
TEST(Resume, TheSidesOfAT5MayBeNamedOrNot) {
  const Args t5{"--model.family=t5", "--vocab-extra-ids", "10"};
  const Config before = loaded(t5);
  EXPECT_EQ(describe(between(before, loaded(t5 + Args{"--decoder-num-layers", "2",
                                                      "--decoder-seq-length", "128"}))),
            "");
  EXPECT_EQ(describe(between(before, loaded(t5 + Args{"--decoder-num-layers", "3"}))),
            "another model: model.decoder_layers = 3 (was 2)\n");
}

TEST(Resume, MoreRanksWithoutAGlobalBatchAreALargerBatch) {
  const ConfigDiff diff = after_flags({"--parallel.ranks", "4"});
  EXPECT_EQ(describe(diff),
            "the curve changes: train.global_batch = 8 (was 2)\n"
            "another layout: parallel.ranks = 4 (was 1)\n");
}

TEST(Resume, PositionsAreWeightsOnlyWhereTheyAreLearned) {
  const ConfigDiff learned = after_flags({"--max-position-embeddings", "256"});
  expect_error(ErrorKind::Usage, "model.positions = 256 (was 128)",
               [&] { require_resumable(learned, {}, "out/step-10"); });
  // Left to follow, they follow the sequence.
  expect_error(ErrorKind::Usage, "model.positions = 256 (was 128)",
               [&] { require_resumable(after_flags({"--seq-length", "256"}), {}, "out/step-10"); });
  const Args rope{"--position-embedding-type", "rope"};
  const ConfigDiff longer = between(
      loaded(rope), loaded(rope + Args{"--max-position-embeddings", "512", "--seq-length", "256"}));
  require_resumable(longer, {}, "out/step-10");
  EXPECT_EQ(describe(longer),
            "the curve changes: train.sequence = 256 (was 128)\n"
            "without an effect on the curve: model.positions\n");
}

TEST(Resume, MicroBatchesChangeTheCurveWhereTheirMeansAreAveraged) {
  const Args micro{"--micro-batch-size", "1", "--global-batch-size", "4"};
  const Args average{"--loss.average", "micro-batch"};
  const Args batch{"--global-batch-size", "4"};
  EXPECT_EQ(describe(between(loaded(batch), loaded(micro))),
            "without an effect on the curve: train.micro_batch\n");
  EXPECT_EQ(describe(between(loaded(batch + average), loaded(micro + average))),
            "the curve changes: train.micro_batch = 1 (was 2)\n");
}

TEST(Resume, FieldsOfOtherVersions) {
  StoredConfig stored = stored_config(loaded());
  stored.erase("optim.beta2");
  stored.erase("optim.beta1");
  stored["optim.colour"] = "\"red\"";
  stored["schedule.decay"] = "12";
  const ConfigDiff diff = diff_config(stored, loaded({"--adam-beta1", "0.8"}), "out/step-10");
  EXPECT_EQ(describe(diff),
            "the curve changes: optim.beta1 = 0.8 (was 0.9)\n"
            "not known to this version and left out: optim.colour = \"red\"\n");
}

TEST(Resume, EarlierNamesOfFields) {
  StoredConfig stored = stored_config(loaded());
  stored.erase("device.autotune");
  stored.erase("parallel.backend");
  stored["device.tune"] = "false";
  stored["parallel.engine"] = "\"gloo\"";
  const Config before = config_from(stored, "out/step-10");
  EXPECT_FALSE(before.device.autotune);
  EXPECT_EQ(before.parallel.backend, CommBackend::Gloo);
  const ConfigDiff diff = diff_config(stored, loaded(), "out/step-10");
  EXPECT_EQ(describe(diff),
            "renamed fields: device.tune is now device.autotune, parallel.engine is now "
            "parallel.backend\n"
            "without an effect on the curve: device.autotune, parallel.backend\n");
  stored["device.tune"] = "3";
  expect_error(ErrorKind::Data, "device.autotune = \"3\"",
               [&] { config_from(stored, "out/step-10"); });
}

TEST(Resume, NoSectionIsCalledLikeTheEntriesOfTheSchedule) {
  for (const Field& field : fields())
    EXPECT_FALSE(field.path.starts_with(kScheduleEntries)) << field.path;
}

TEST(Resume, LinesByEffect) {
  const ConfigDiff diff = after_flags(
      {"--log-interval", "5", "--parallel.ranks", "2", "--tensor-model-parallel-size", "2",
       "--clip-grad", "2", "--adam-beta2", "0.95", "--save", "x", "--hidden-size", "32"});
  EXPECT_EQ(describe(diff),
            "another model: model.width = 32 (was 64)\n"
            "another model: model.head_dim = 8 (was 16)\n"
            "another model: model.ffn = 128 (was 256)\n"
            "the curve changes: optim.beta2 = 0.95 (was 0.999)\n"
            "the curve changes: optim.clip = 2.0 (was 1.0)\n"
            "another layout: parallel.ranks = 2 (was 1), parallel.tensor = 2 (was 1)\n"
            "without an effect on the curve: train.log_interval, checkpoint.save\n");
  EXPECT_EQ(describe(diff, true).find("the curve changes"), std::string::npos);
  EXPECT_NE(describe(diff, true).find("another layout"), std::string::npos);
}

TEST(Resume, AnotherModelIsRefusedWithAllThatDiffers) {
  for (const bool finetune : {false, true}) {
    CheckpointConfig checkpoint;
    checkpoint.finetune = finetune;
    const std::string message = expect_error(ErrorKind::Usage, "another model", [&] {
      require_resumable(after_flags({"--num-layers", "4", "--swiglu", "--adam-beta2", "0.95"}),
                        checkpoint, "out/step-10");
    });
    for (const char* text : {"out/step-10", "1 problem", "model.layers = 4 (was 2)",
                             "model.activation = \"swiglu\" (was \"gelu-tanh\")"})
      EXPECT_NE(message.find(text), std::string::npos) << text << " is not in\n" << message;
    EXPECT_EQ(message.find("beta2"), std::string::npos) << message;
  }
}

TEST(Resume, AnotherOptimizerIsRefusedWhereItsStateIsLoaded) {
  const ConfigDiff diff = after_flags({"--optimizer", "sgd"});
  CheckpointConfig checkpoint;
  const std::string message = expect_error(ErrorKind::Usage, "another optimizer", [&] {
    require_resumable(diff, checkpoint, "out/step-10");
  });
  for (const char* text : {"optim.kind = \"sgd\" (was \"adam\")", "--no-load-optim"})
    EXPECT_NE(message.find(text), std::string::npos) << text << " is not in\n" << message;
  checkpoint.load_optimizer = false;
  require_resumable(diff, checkpoint, "out/step-10");
  checkpoint = {};
  checkpoint.finetune = true;
  require_resumable(diff, checkpoint, "out/step-10");
}

TEST(Resume, BothRefusalsInOneError) {
  expect_error(ErrorKind::Usage, "2 problems", [&] {
    require_resumable(after_flags({"--optimizer", "sgd", "--num-layers", "4"}), {}, "out/step-10");
  });
}

TEST(Resume, ScheduleFieldsAreComparedElsewhere) {
  std::string paths;
  for (const Field& field : fields())
    if (is_schedule_field(field.path)) paths += std::string(field.key()) + " ";
  EXPECT_EQ(paths,
            "lr min_lr decay decay_iterations decay_samples warmup_iterations warmup_samples "
            "warmup_fraction warmup_init wsd_decay wsd_iterations wsd_samples weight_decay "
            "start_weight_decay end_weight_decay weight_decay_ramp ");
  EXPECT_EQ(describe(after_flags({"--lr", "0.5", "--lr-decay-style", "cosine"})), "");
}

// Stored values are in range, but need not go together.
TEST(Resume, AnyStoredConfigurationCanBeCompared) {
  std::mt19937_64 random(31);
  for (int round = 0; round < 10; ++round) {
    const Config before = random_config(random), now = random_config(random);
    const ConfigDiff diff = between(before, now);
    EXPECT_GT(diff.changes.size(), 20u);
    EXPECT_TRUE(between(now, now).changes.empty());
  }
}

}  // namespace
}  // namespace bev
