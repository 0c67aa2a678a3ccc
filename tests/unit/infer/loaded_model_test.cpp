#include "infer/loaded_model.h"

#include <gtest/gtest.h>

#include "checkpoint/checkpoint_survey.h"
#include "checkpoint/checksum.h"
#include "convert/convert.h"
#include "support/expect_error.h"
#include "unit/infer/stored_model.h"

namespace bev {
namespace {

using test::expect_error;

TEST(ModelFolder, OfARunAndOfAModel) {
  const test::StoredModel stored;
  const ModelFolder run = stored.folder();
  EXPECT_TRUE(run.is_run);
  EXPECT_EQ(run.config.train.sequence, 7);
  EXPECT_EQ(run.config.model.vocab, 29);
  EXPECT_EQ(run.config.model.vocab_multiple, 1);
  const ModelFolder model = open_model_folder(stored.path() / "model");
  EXPECT_FALSE(model.is_run);
  EXPECT_EQ(model.config.model.vocab, 29);
  EXPECT_EQ(model.config.data.eod, -1);
  EXPECT_EQ(longest_sequence(model, 5), 5);
  EXPECT_EQ(longest_sequence(model, 1000), 9);
}

TEST(ModelFolder, DropoutIsForTraining) {
  Config config = test::tiny_gpt();
  config.model.hidden_dropout = config.model.attention_dropout = 0.5;
  const test::StoredModel stored(config);
  EXPECT_EQ(stored.folder().config.model.hidden_dropout, 0);
  EXPECT_EQ(stored.folder().config.model.attention_dropout, 0);
}

// A model that many ranks trained is used by one.
TEST(ModelFolder, LayoutIsForTraining) {
  const test::StoredModel stored;
  Config trained = stored.config;
  trained.parallel.ranks = 4;
  trained.parallel.tensor = trained.parallel.pipeline = 2;
  RunDirectory(stored.path()).prepare(print_config(trained));
  LoadedModel model = stored.load(1, 7);
  EXPECT_EQ(test::all_logits(model, {1, 2, 3}).size(), 3u * 29);
}

TEST(ModelFolder, WithoutAModel) {
  const test::TemporaryDirectory dir;
  expect_error(ErrorKind::Data, "there is no folder", [&] { open_model_folder(dir / "none"); });
  expect_error(ErrorKind::Data, "holds no model", [&] { open_model_folder(dir.path()); });
  RunDirectory(dir.path()).prepare("");
  expect_error(ErrorKind::Data, "holds no model", [&] { open_model_folder(dir.path()); });
}

// Scoring and generating begin with it.
TEST(ModelFolder, EndOfDocumentIsInTheVocabulary) {
  const test::StoredModel stored;
  Config other = stored.config;
  other.model.vocab = 100;
  other.data.eod = 29;
  RunDirectory(stored.path()).prepare(print_config(other));
  expect_error(ErrorKind::Data, "data.eod is 29", [&] { (void)stored.folder(); });
}

TEST(ModelFolder, WeightsCutOff) {
  const test::StoredModel stored;
  const std::filesystem::path file = stored.path() / "model/model.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  expect_error(ErrorKind::Data, "model.safetensors", [&] { stored.load(1, 7); });
  std::filesystem::remove(file);
  expect_error(ErrorKind::Data, "model", [&] { stored.load(1, 7); });
}

// The weights of a checkpoint give the logits of the model it was made of, wherever its folder is.
TEST(LoadedModel, OfACheckpoint) {
  for (const Config& config : {test::tiny_gpt(), test::tiny_llama()}) {
    const test::StoredModel stored(config);
    const test::TemporaryDirectory dir;
    huggingface_to_checkpoint(stored.path() / "model", dir / "run/checkpoints", {});
    const std::vector<int32_t> ids{1, 2, 3, 4, 5, 6, 28};
    LoadedModel model = stored.load(1, 7);
    const std::vector<double> expected = test::all_logits(model, ids);
    for (const char* place : {"run", "run/checkpoints", "run/checkpoints/release"}) {
      const ModelFolder folder = open_model_folder(dir / place);
      EXPECT_TRUE(folder.is_checkpoint);
      EXPECT_FALSE(folder.is_run);
      EXPECT_EQ(folder.config.model.vocab, 29);
      EXPECT_EQ(longest_sequence(folder, 1000), 9);
      LoadedModel loaded(folder, {.kind = DeviceKind::Reference, .threads = 1}, 1, 7);
      EXPECT_EQ(test::all_logits(loaded, ids), expected) << place;
    }
  }
}

// A checkpoint of a training says with which data and tokenizer; how it was divided does not
// matter.
TEST(LoadedModel, OfACheckpointOfATraining) {
  const test::StoredModel stored;
  huggingface_to_checkpoint(stored.path() / "model", stored.path() / "checkpoints", {});
  const std::filesystem::path checkpoint = stored.path() / "checkpoints/release";
  Config trained = stored.config;
  trained.parallel.tensor = 2;
  trained.data.eod = 28;
  const std::string text = print_config(trained);
  Manifest manifest = read_manifest(checkpoint);
  manifest.optimizer = "adam";
  for (CheckpointFile& file : manifest.files) {
    if (file.name != kCheckpointConfig) continue;
    file.bytes = text.size();
    file.checksum = checksum_of(text);
  }
  RunDirectory(checkpoint).prepare(text);
  write_manifest(checkpoint, manifest);
  const ModelFolder folder = open_model_folder(stored.path() / "checkpoints");
  EXPECT_TRUE(folder.is_run);
  EXPECT_EQ(folder.config.data.eod, 28);
  EXPECT_EQ(folder.config.parallel.tensor, 1);
  EXPECT_EQ(folder.config.model.vocab_multiple, 1);
  const std::vector<int32_t> ids{1, 2, 3, 4, 5, 6, 28};
  LoadedModel model = stored.load(1, 7);
  LoadedModel loaded(folder, {.kind = DeviceKind::Reference, .threads = 1}, 1, 7);
  EXPECT_EQ(test::all_logits(loaded, ids), test::all_logits(model, ids));
}

// A finished model comes before the checkpoints on the way to it.
TEST(ModelFolder, OfARunWithCheckpoints) {
  const test::StoredModel stored;
  huggingface_to_checkpoint(stored.path() / "model", stored.path() / "checkpoints", {});
  EXPECT_FALSE(stored.folder().is_checkpoint);
  std::filesystem::remove_all(stored.path() / "model");
  EXPECT_TRUE(stored.folder().is_checkpoint);
}

// Fails when a run that keeps its checkpoints elsewhere is no model, or comes before its model/.
TEST(ModelFolder, OfARunWithCheckpointsElsewhere) {
  const test::StoredModel stored;
  const test::TemporaryDirectory dir;
  const auto run = [&] { return open_model_folder(dir / "run"); };
  Config config = stored.config;
  config.checkpoint.save = (dir / "saved").string();
  RunDirectory(dir / "run").prepare(print_config(config));
  expect_error(ErrorKind::Data, "saved, where its run saves checkpoints", run);
  huggingface_to_checkpoint(stored.path() / "model", dir / "saved", {});
  EXPECT_TRUE(run().is_checkpoint);
  EXPECT_EQ(run().weights, dir / "saved/release");
  std::filesystem::copy(stored.path() / "model", dir / "run/model");
  EXPECT_FALSE(run().is_checkpoint);
}

}  // namespace
}  // namespace bev
