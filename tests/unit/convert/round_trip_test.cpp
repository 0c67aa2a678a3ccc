// Hugging Face's format to a checkpoint and back.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <functional>
#include <set>

#include "base/file.h"
#include "checkpoint/checkpoint_folder.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_survey.h"
#include "config/parse/toml.h"
#include "convert/checkpoint_weights.h"
#include "convert/convert.h"
#include "convert/huggingface/huggingface.h"
#include "ops/make_device.h"
#include "pipeline/rank_model.h"
#include "support/expect_error.h"
#include "support/small_run.h"
#include "support/temporary_directory.h"
#include "support/tiny_models.h"
#include "unit/convert/bit_pattern.h"

namespace bev {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::PatternWeights;
using test::TemporaryDirectory;

struct Named {
  DType dtype;
  Shape shape;
  std::vector<std::byte> bytes;
  bool operator==(const Named&) const = default;
};
using Tensors = std::map<std::string, Named>;

Tensors read_tensors(const fs::path& dir) {
  Tensors all;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir)) {
    if (entry.path().extension() != ".safetensors") continue;
    const SafetensorsReader reader(entry.path());
    EXPECT_EQ(reader.metadata().at("format"), "pt");
    for (const StoredTensor& t : reader.tensors()) {
      const auto bytes = reader.bytes(t);
      EXPECT_TRUE(all.try_emplace(t.name, *t.dtype, t.shape,
                                  std::vector<std::byte>(bytes.begin(), bytes.end()))
                      .second)
          << t.name << " stands in two files";
    }
  }
  return all;
}

void write_tensors(const fs::path& file, const Tensors& tensors) {
  std::vector<TensorToWrite> list;
  for (const auto& [name, t] : tensors) list.push_back({name, t.dtype, t.shape});
  write_safetensors(file, list, [&](const TensorToWrite& out, std::span<std::byte> to) {
    const std::vector<std::byte>& bytes = tensors.at(out.name).bytes;
    std::copy(bytes.begin(), bytes.end(), to.begin());
  });
}

void write_text(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

// A model of patterns in Hugging Face's format.
void make_model(const fs::path& dir, const Config& config, DType dtype,
                size_t shard_bytes = size_t{1} << 40) {
  PatternWeights weights(dtype);
  HuggingFaceOutput output;
  output.most_shard_bytes = shard_bytes;
  write_huggingface(dir, config, model_parameters(config), weights, output);
}

// Blocks of a few elements, so that every tensor is copied in several.
ConversionOptions small_blocks() {
  ConversionOptions options;
  options.program = "test 1";
  options.block_bytes = 200;
  return options;
}

class RoundTrip : public testing::Test {
 protected:
  void import() { huggingface_to_checkpoint(dir / "hf", dir / "bev", small_blocks()); }
  void export_as(const HuggingFaceExport& how = {}) {
    checkpoint_to_huggingface(dir / "bev", dir / "back", how, small_blocks());
  }
  void expect_import_refused(ErrorKind kind, const std::string& message) {
    expect_error(kind, message, [&] { import(); });
    EXPECT_FALSE(fs::exists(dir / "bev")) << "a refused conversion leaves something behind";
  }
  // Changes the tensors of dir/hf.
  void edit(const std::function<void(Tensors&)>& change) {
    Tensors tensors = read_tensors(dir / "hf");
    change(tensors);
    write_tensors(dir.path() / "hf" / kHuggingFaceWeights, tensors);
  }

  TemporaryDirectory dir;
};

std::vector<test::TinyModel> families() {
  std::vector<test::TinyModel> all;
  const auto add = [&](const char* name, Config config, auto change) {
    change(config.model);
    all.push_back({name, config});
  };
  add("gpt2", test::tiny_gpt(), [](ModelConfig&) {});
  add("gpt2_untied", test::tiny_gpt(), [](ModelConfig& m) { m.tied = false; });
  add("llama_untied_groups", test::tiny_llama(), [](ModelConfig&) {});
  add("llama_tied", test::tiny_llama(), [](ModelConfig& m) { m.tied = true; });
  add("llama3_scaling", test::tiny_llama(), [](ModelConfig& m) {
    m.rope_scaling = RopeScaling::Llama3;
    m.rope_base = 500000;
    m.rope_factor = 32;
    m.rope_original_positions = 4096;
  });
  add("mistral", test::tiny_llama(), [](ModelConfig& m) { m.window = 3; });
  add("qwen2", test::tiny_llama(), [](ModelConfig& m) { m.bias = BiasKind::Qkv; });
  add("qwen3", test::tiny_llama(), [](ModelConfig& m) {
    m.qk_norm = true;
    m.head_dim = 6;
  });
  const auto post_norm = [](ModelConfig& m) {
    m.norm_placement = NormPlacement::Post;
    m.activation = Activation::GeluErf;
  };
  add("bert", test::tiny_bert(), post_norm);
  add("bert_masked_lm", test::tiny_bert(), [&](ModelConfig& m) {
    post_norm(m);
    m.binary_head = false;
  });
  add("t5_1_0", test::tiny_huggingface_t5(), [](ModelConfig& m) { m.scale_head_input = true; });
  add("t5_1_1", test::tiny_huggingface_t5(), [](ModelConfig& m) {
    m.tied = false;
    m.activation = Activation::GeGluTanh;
    m.ffn = 20;
    m.decoder_layers = 3;
  });
  return all;
}

Config post_norm_bert() {
  Config config = test::tiny_bert();
  config.model.norm_placement = NormPlacement::Post;
  config.model.activation = Activation::GeluErf;
  return config;
}

void set_architecture(const fs::path& dir, const char* name) {
  Json config = read_json(dir / kHuggingFaceConfig);
  config["architectures"] = Json::array({name});
  write_text(dir / kHuggingFaceConfig, config.dump());
}

// Fails when a value changes a bit, lands elsewhere, or a name, shape, type or field is lost, on
// the way in or out, in one file or in several.
TEST_F(RoundTrip, EveryBitOfEveryFamilyComesBack) {
  for (const auto& [name, config] : families()) {
    SCOPED_TRACE(name);
    const auto expect_comes_back = [&](DType dtype, size_t shard_bytes) {
      for (const char* each : {"hf", "bev", "back"}) fs::remove_all(dir / each);
      make_model(dir / "hf", config, dtype, shard_bytes);
      import();
      export_as();
      EXPECT_EQ(read_tensors(dir / "hf"), read_tensors(dir / "back"));
      EXPECT_EQ(read_text(dir.path() / "hf" / kHuggingFaceConfig),
                read_text(dir.path() / "back" / kHuggingFaceConfig));
    };
    expect_comes_back(DType::f16, size_t{1} << 40);
    expect_comes_back(DType::f32, size_t{1} << 40);
    expect_comes_back(DType::bf16, 4000);
    EXPECT_TRUE(fs::exists(dir / "hf" / kHuggingFaceIndex));
  }
}

// Fails when the checkpoint does not hold each parameter whole, under our name, q before k before
// v.
TEST_F(RoundTrip, TheCheckpointHasOurParameters) {
  const Config config = test::tiny_llama();
  make_model(dir / "hf", config, DType::bf16);
  import();
  const CheckpointReader stored(dir.path() / "bev" / "release");
  const std::vector<ParamSpec> specs = model_parameters(config);
  EXPECT_EQ(stored.tensors().size(), specs.size());
  int64_t parameters = 0;
  for (const ParamSpec& spec : specs) {
    const CheckpointReader::Tensor* tensor = stored.find(spec.name);
    ASSERT_NE(tensor, nullptr) << spec.name;
    EXPECT_EQ(tensor->dtype, DType::bf16);
    EXPECT_EQ(tensor->shape, spec.shape);
    std::vector<std::byte> bytes(tensor->bytes());
    stored.read(*tensor, whole_of(tensor->shape), DType::bf16, bytes.data());
    EXPECT_EQ(bytes, test::pattern_bytes(spec.name, spec.shape.elements(), 2)) << spec.name;
    parameters += spec.shape.elements();
  }
  const Manifest& manifest = stored.manifest();
  EXPECT_EQ(manifest.iteration, 0);
  EXPECT_EQ(manifest.optimizer, "");
  EXPECT_EQ(manifest.parameters, parameters);
  EXPECT_EQ(manifest.config.at("model.width"), "16");
  ASSERT_EQ(manifest.history.size(), 1u);
  EXPECT_EQ(manifest.history[0].program, "test 1");
  EXPECT_EQ(read_text(dir.path() / "bev" / "latest_checkpointed_iteration.txt"), "release");
  const Config read = read_checkpoint_config(stored);
  EXPECT_EQ(read.model.kv_heads, 2);
  EXPECT_EQ(read.model.vocab, 29);
}

// Fails when shards exceed the bound, cut a tensor, or the index says something else than the
// files.
TEST_F(RoundTrip, ShardsAreLaidOutAsTransformersDoes) {
  make_model(dir / "hf", test::tiny_llama(), DType::f32);
  import();
  HuggingFaceExport how;
  how.most_shard_bytes = 4000;
  export_as(how);
  EXPECT_FALSE(fs::exists(dir / "back" / kHuggingFaceWeights));
  const Json index = read_json(dir / "back" / kHuggingFaceIndex);
  const Tensors tensors = read_tensors(dir / "back");
  size_t total = 0;
  for (const auto& [name, tensor] : tensors) {
    total += tensor.bytes.size();
    const SafetensorsReader shard(dir / "back" / index["weight_map"].at(name));
    EXPECT_NE(shard.find(name), nullptr) << name;
  }
  EXPECT_EQ(index["metadata"]["total_size"], total);
  EXPECT_EQ(index["metadata"]["total_parameters"], total / 4);
  EXPECT_EQ(index["weight_map"].size(), tensors.size());
  std::set<std::string> names;
  for (const auto& [name, shard] : index["weight_map"].items()) names.insert(shard);
  EXPECT_GT(names.size(), 2u);
  for (const std::string& name : names) {
    EXPECT_TRUE(name.ends_with(format("-of-{:05d}.safetensors", names.size()))) << name;
    const SafetensorsReader shard(dir / "back" / name);
    size_t bytes = 0;
    for (const StoredTensor& tensor : shard.tensors()) bytes += tensor.bytes;
    EXPECT_TRUE(bytes <= 4000 || shard.tensors().size() == 1) << name;
  }
  // They are read again, and replaced by one file.
  huggingface_to_checkpoint(dir / "back", dir / "again", small_blocks());
  export_as();
  EXPECT_FALSE(fs::exists(dir / "back" / kHuggingFaceIndex));
  EXPECT_EQ(read_tensors(dir / "back"), tensors);
}

// The names of google-bert/bert-base-uncased and of what transformers wrote since.
TEST_F(RoundTrip, OlderNamesOfABertAreKnown) {
  make_model(dir / "hf", post_norm_bert(), DType::f32);
  const Tensors plain = read_tensors(dir / "hf");
  edit([](Tensors& t) {
    Tensors renamed;
    for (auto& [name, tensor] : t) {
      std::string old = name;
      if (old.ends_with("LayerNorm.weight")) old.replace(old.size() - 6, 6, "gamma");
      if (old.ends_with("LayerNorm.bias")) old.replace(old.size() - 4, 4, "beta");
      renamed[old] = tensor;
    }
    renamed["bert.embeddings.position_ids"] = {DType::i64, {1, 1}, std::vector<std::byte>(8)};
    renamed["cls.predictions.decoder.bias"] = renamed.at("cls.predictions.bias");
    renamed["cls.predictions.decoder.weight"] =
        renamed.at("bert.embeddings.word_embeddings.weight");
    t = renamed;
  });
  import();
  export_as();
  EXPECT_EQ(read_tensors(dir / "back"), plain);
  fs::remove_all(dir / "bev");
  edit([](Tensors& t) { t.erase("cls.predictions.bias"); });
  import();
  export_as();
  EXPECT_EQ(read_tensors(dir / "back"), plain);
  fs::remove_all(dir / "bev");
  edit([](Tensors& t) {
    t["cls.predictions.bias"] = t.at("cls.predictions.decoder.bias");
    t.at("cls.predictions.bias").bytes.back() ^= std::byte{1};
  });
  expect_import_refused(ErrorKind::Data,
                        "cls.predictions.decoder.bias differs from cls.predictions.bias");
}

Config t5_of_version(bool is_1_0) {
  Config config = test::tiny_huggingface_t5();
  config.model.tied = config.model.scale_head_input = is_1_0;
  return config;
}

// Published files hold the table under the names of both sides and of the head, and relative
// positions of cross attention, which nothing uses.
TEST_F(RoundTrip, CopiesInAT5AreKnown) {
  make_model(dir / "hf", t5_of_version(true), DType::f32);
  const Tensors plain = read_tensors(dir / "hf");
  const std::string encoder = "encoder.embed_tokens.weight",
                    decoder = "decoder.embed_tokens.weight";
  edit([&](Tensors& t) {
    for (const std::string& name : {encoder, decoder, std::string("lm_head.weight")})
      t[name] = t.at("shared.weight");
    t["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] =
        t.at("decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
  });
  const auto expect_plain = [&] {
    fs::remove_all(dir / "bev");
    import();
    export_as();
    EXPECT_EQ(read_tensors(dir / "back"), plain);
  };
  expect_plain();
  edit([](Tensors& t) { t.erase("shared.weight"); });
  expect_plain();
  edit([&](Tensors& t) {
    t.erase(encoder);
    t.erase("lm_head.weight");
  });
  expect_plain();
  fs::remove_all(dir / "bev");
  edit([&](Tensors& t) {
    t[encoder] = t.at(decoder);
    t.at(encoder).bytes.back() ^= std::byte{1};
  });
  expect_import_refused(ErrorKind::Data, "but both sides of a T5 have one token table");
}

// transformers 5 writes tie_word_embeddings true into every T5.
TEST_F(RoundTrip, AT5OfTransformers5IsUntiedIfItStoresAHead) {
  make_model(dir / "hf", t5_of_version(false), DType::f32);
  const std::string config = read_text(dir.path() / "hf" / kHuggingFaceConfig);
  Json json = parse_json(config, "config.json");
  EXPECT_EQ(json["tie_word_embeddings"], false);
  json["tie_word_embeddings"] = true;
  json["scale_decoder_outputs"] = false;
  write_text(dir.path() / "hf" / kHuggingFaceConfig, json.dump());
  import();
  export_as();
  EXPECT_EQ(read_tensors(dir / "back"), read_tensors(dir / "hf"));
  EXPECT_EQ(read_text(dir.path() / "back" / kHuggingFaceConfig), config);
  // Tied and not scaled fits no T5 of transformers.
  fs::remove_all(dir / "bev");
  edit([](Tensors& t) { t.erase("lm_head.weight"); });
  import();
  expect_error(ErrorKind::Usage, "model.scale_head_input = false", [&] { export_as(); });
}

// Fails when the ids that a decoder begins and ends with are lost, or taken from the wrong file.
TEST_F(RoundTrip, SpecialIdsOfAT5ComeBack) {
  make_model(dir / "hf", t5_of_version(true), DType::f32);
  const fs::path from = dir.path() / "hf" / kHuggingFaceConfig;
  Json config = read_json(from);
  config["decoder_start_token_id"] = 7;
  config["eos_token_id"] = Json::array({9, 10});
  config["pad_token_id"] = 3;
  write_text(from, config.dump());
  import();
  export_as();
  const auto ids = [&] {
    const Json back = read_json(dir.path() / "back" / kHuggingFaceConfig);
    return std::vector<int64_t>{back["decoder_start_token_id"], back["eos_token_id"],
                                back["pad_token_id"]};
  };
  EXPECT_EQ(ids(), (std::vector<int64_t>{7, 9, 3}));
  EXPECT_TRUE(fs::exists(dir.path() / "back" / kGenerationConfig));
  write_text(dir.path() / "hf" / kGenerationConfig, R"({"eos_token_id": 11, "pad_token_id": 2})");
  import();
  export_as();
  EXPECT_EQ(ids(), (std::vector<int64_t>{2, 11, 2}));
  write_text(dir.path() / "hf" / kGenerationConfig, R"({"eos_token_id": 29})");
  fs::remove_all(dir / "bev");
  expect_import_refused(ErrorKind::Data, "eos_token_id = 29 is not an id below 29");
}

// Fails when the pooler of a file whose config.json has no use for it is refused, or lost
// silently.
TEST_F(RoundTrip, AMaskedLmLeavesOutTheBinaryHeadOfItsFile) {
  make_model(dir / "hf", post_norm_bert(), DType::f32);
  set_architecture(dir / "hf", "BertForMaskedLM");
  const Conversion result = huggingface_to_checkpoint(dir / "hf", dir / "bev", small_blocks());
  ASSERT_EQ(result.notes.size(), 1U);
  EXPECT_NE(result.notes[0].find("bert.pooler.dense.bias"), std::string::npos) << result.notes[0];
  EXPECT_NE(result.notes[0].find("cls.seq_relationship.weight"), std::string::npos);
  export_as();
  const Tensors back = read_tensors(dir / "back");
  EXPECT_FALSE(back.contains("bert.pooler.dense.weight"));
  EXPECT_TRUE(back.contains("cls.predictions.bias"));
}

// A BertModel has no LM head: its encoder loads under both spellings of its names.
TEST_F(RoundTrip, ABertModelIsAnEncoderAlone) {
  make_model(dir / "hf", post_norm_bert(), DType::f32);
  set_architecture(dir / "hf", "BertModel");
  edit([](Tensors& t) {
    std::erase_if(t, [](const auto& e) { return e.first.starts_with("cls."); });
  });
  const Config config = post_norm_bert();
  const auto loaded = [&] {
    const auto device = make_device(DeviceKind::Reference, 1);
    RankModel model(config, *device);
    load_huggingface(dir / "hf", model.params, MissingHeads::Zeros);
    std::map<std::string, std::vector<double>> values;
    for (const Param* param : model.params.all())
      values[param->spec.name] = test::values_of(param->value);
    return values;
  };
  EXPECT_FALSE(read_huggingface_config(dir / "hf").has_heads);
  const auto prefixed = loaded();
  for (const double value : prefixed.at("lm_head.dense.weight")) EXPECT_EQ(value, 0);
  EXPECT_NE(prefixed.at("layers.1.norm2.weight"), prefixed.at("layers.0.norm2.weight"));
  edit([](Tensors& t) {
    Tensors bare;
    for (auto& [name, tensor] : t) bare[name.substr(5)] = tensor;
    t = bare;
  });
  const auto bare = loaded();
  for (const auto& [name, values] : prefixed)
    EXPECT_EQ(std::memcmp(values.data(), bare.at(name).data(), values.size() * sizeof(double)), 0)
        << name;
  // An unexpected tensor is refused there, too.
  edit([](Tensors& t) { t["extra"] = t.at("embeddings.LayerNorm.weight"); });
  expect_error(ErrorKind::Data, "the first is \"extra\"", loaded);
}

// Fails when no run can start from a BertModel, its heads start differently from those of a
// new run, or its pooler is lost.
TEST_F(RoundTrip, ABertModelGetsTheHeadsOfANewTraining) {
  make_model(dir / "hf", post_norm_bert(), DType::f32);
  set_architecture(dir / "hf", "BertModel");
  edit([](Tensors& t) {
    std::erase_if(t, [](const auto& e) { return e.first.starts_with("cls."); });
  });
  const Conversion result =
      huggingface_to_checkpoint(dir / "hf", dir / "bev", {.block_bytes = 100});
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("binary_head.output.weight"), std::string::npos);
  EXPECT_EQ(result.notes[0].find("binary_head.pooler.weight"), std::string::npos);

  const CheckpointReader stored(dir.path() / "bev" / "release");
  const Config config = read_checkpoint_config(stored);
  const auto device = make_device(DeviceKind::Reference, 1);
  RankModel imported(config, *device), fresh(config, *device), encoder(config, *device);
  CheckpointWeights weights(stored, config.model.vocab);
  load_weights(weights, imported.params);
  load_huggingface(dir / "hf", encoder.params, MissingHeads::Zeros);
  fresh.params.initialize(static_cast<uint64_t>(config.train.seed));
  for (const Param* param : imported.params.all()) {
    const std::string& name = param->spec.name;
    const bool is_new = name.starts_with("lm_head.") || name.starts_with("binary_head.output.");
    const Param* expected = (is_new ? fresh : encoder).params.find(name);
    const std::vector<double> got = test::values_of(param->value);
    const std::vector<double> values = test::values_of(expected->value);
    // Bits, because some of the stored values are not numbers.
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(static_cast<float>(got[i])),
                std::bit_cast<uint32_t>(static_cast<float>(values[i])))
          << name;
  }
}

TEST_F(RoundTrip, ATiedModelMayStoreItsHead) {
  Config config = test::tiny_llama();
  config.model.tied = true;
  make_model(dir / "hf", config, DType::f32);
  const Tensors without = read_tensors(dir / "hf");
  edit([](Tensors& t) { t["lm_head.weight"] = t.at("model.embed_tokens.weight"); });
  import();
  export_as();
  EXPECT_EQ(read_tensors(dir / "back"), without);
  fs::remove_all(dir / "bev");
  edit([](Tensors& t) { t.at("lm_head.weight").bytes.back() ^= std::byte{1}; });
  expect_import_refused(ErrorKind::Data, "but tie_word_embeddings is true");
}

TEST_F(RoundTrip, WhatDoesNotFitIsRefusedBeforeAnythingIsWritten) {
  const auto refused = [&](const char* message, const std::function<void(Tensors&)>& change,
                           ErrorKind kind = ErrorKind::Data) {
    fs::remove_all(dir / "hf");
    make_model(dir / "hf", test::tiny_llama(), DType::f32);
    edit(change);
    expect_import_refused(kind, message);
  };
  refused("there is no tensor \"model.layers.1.mlp.up_proj.weight\"",
          [](Tensors& t) { t.erase("model.layers.1.mlp.up_proj.weight"); });
  refused("1 tensors belong to no parameter of the model, the first is \"model.extra\"",
          [](Tensors& t) { t["model.extra"] = t.at("model.norm.weight"); });
  refused("is [4, 4], the model has [16]",
          [](Tensors& t) { t.at("model.norm.weight").shape = {4, 4}; });
  refused("is stored as I32; weights are F64, F32, BF16 or F16",
          [](Tensors& t) { t.at("model.norm.weight").dtype = DType::i32; });
  refused("is F32 and \"model.layers.0.self_attn.k_proj.weight\" of model.safetensors is BF16",
          [](Tensors& t) {
            Named& key = t.at("model.layers.0.self_attn.k_proj.weight");
            key.dtype = DType::bf16;
            key.bytes.resize(key.bytes.size() / 2);
          });
}

TEST_F(RoundTrip, AnUnknownFamilyIsRefused) {
  make_model(dir / "hf", test::tiny_llama(), DType::f32);
  Json config = read_json(dir / "hf" / kHuggingFaceConfig);
  config["model_type"] = "mt5";
  write_text(dir.path() / "hf" / kHuggingFaceConfig, config.dump());
  expect_import_refused(ErrorKind::Usage, "there are gpt2, llama, mistral, qwen2, qwen3, bert, t5");
}

TEST_F(RoundTrip, ForeignFoldersAreNotReplaced) {
  make_model(dir / "hf", test::tiny_gpt(), DType::f32);
  import();
  import();  // an earlier output is
  export_as();
  export_as();
  write_text(dir / "bev/precious.txt", "x");
  expect_error(ErrorKind::Data, "precious.txt", [&] { import(); });
  write_text(dir / "back/precious.txt", "x");
  expect_error(ErrorKind::Data, "precious.txt", [&] { export_as(); });
  fs::create_directories(dir / "run/iter_0000100");
  expect_error(ErrorKind::Data, "iter_0000100",
               [&] { huggingface_to_checkpoint(dir / "hf", dir / "run", small_blocks()); });
  write_text(dir / "file", "x");
  expect_error(ErrorKind::Data, "is not a folder",
               [&] { huggingface_to_checkpoint(dir / "hf", dir / "file", small_blocks()); });
  fs::remove(dir / "back/precious.txt");
  make_model(dir / "other", test::tiny_gpt(), DType::f32);
  write_tensors(dir / "other/model.safetensors", read_tensors(dir / "other"));
  expect_error(ErrorKind::Data, "did not write",
               [&] { checkpoint_to_huggingface(dir / "bev", dir / "other", {}, small_blocks()); });
}

TEST_F(RoundTrip, FilesOfTheTokenizerAreCarriedAlong) {
  make_model(dir / "hf", test::tiny_gpt(), DType::f32);
  for (const char* name : {"vocab.json", "merges.txt", "spiece.model", "tokenizer_config.json",
                           "special_tokens_map.json", "generation_config.json"})
    write_text(dir.path() / "hf" / name, format("content of {}", name));
  write_text(dir / "hf/README.md", "not carried");
  import();
  export_as();
  for (const char* name : {"vocab.json", "merges.txt", "spiece.model", "tokenizer_config.json",
                           "special_tokens_map.json", "generation_config.json"})
    EXPECT_EQ(read_text(dir.path() / "back" / name), format("content of {}", name));
  EXPECT_FALSE(fs::exists(dir / "back/README.md"));
  write_text(dir / "bev/release/merges.txt", "changed");
  expect_error(ErrorKind::Data, "merges.txt has", [&] { export_as(); });
}

TEST_F(RoundTrip, DamageIsFound) {
  make_model(dir / "hf", test::tiny_gpt(), DType::f32);
  import();
  const fs::path file = dir / "bev/release/weights-00000-of-00001.safetensors";
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(-3, std::ios::end);
  stream.put('\x55');
  stream.close();
  expect_error(ErrorKind::Data, "is damaged", [&] { export_as(); });
  EXPECT_FALSE(fs::exists(dir / "back"));
}

// A checkpoint as two tensor ranks of a training write it: pieces by rows or columns, a padded
// vocabulary, what the optimizer keeps.
void write_training_checkpoint(const fs::path& folder, const Config& config, DType dtype) {
  fs::create_directories(folder);
  Config padded = config;
  padded.model.vocab_multiple = 16;
  Manifest manifest;
  manifest.iteration = 100;
  manifest.optimizer = "adam";
  PatternWeights weights(dtype), masters(DType::f32);
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<std::pair<const ParamSpec*, TensorPiece>> list;
    std::vector<TensorPiece> pieces;
    const std::vector<ParamSpec> specs = model_parameters(padded);
    for (const ParamSpec& spec : specs) {
      const Rectangle whole = whole_of(spec.shape);
      const bool by_columns = whole.columns > 1 && spec.name.find("down") != std::string::npos;
      Rectangle half = whole;
      if (by_columns) {
        half.columns = rank == 0 ? 3 : whole.columns - 3;
        half.column = rank * 3;
      } else {
        half.rows = rank == 0 ? 5 : whole.rows - 5;
        half.row = rank * 5;
      }
      list.emplace_back(&spec, TensorPiece{spec.name, dtype, spec.shape, half});
      if (rank == 0)
        list.emplace_back(&spec, TensorPiece{spec.name + "/master", DType::f32, spec.shape, whole});
    }
    for (const auto& [spec, piece] : list) pieces.push_back(piece);
    PieceFileWriter file(folder / format("rank-{}.safetensors", rank), pieces);
    for (const auto& [spec, piece] : list) {
      std::vector<std::byte> bytes(piece.bytes());
      const bool is_master = piece.tensor != spec->name;
      (is_master ? masters : weights).read(*spec, piece.where, piece.dtype, bytes.data());
      file.write(bytes);
    }
    manifest.files.push_back(file.finish());
  }
  const std::string text = print_config(padded);
  write_text(folder / kCheckpointConfig, text);
  manifest.files.push_back({.name = kCheckpointConfig,
                            .bytes = text.size(),
                            .checksum = checksum_of(text),
                            .holds_pieces = false});
  write_manifest(folder, manifest);
}

// Fails when pieces are put together wrongly, padding is exported, or the optimizer's tensors are
// taken for weights.
TEST_F(RoundTrip, ACheckpointOfAnyLayoutIsExported) {
  for (const Config& config : {test::tiny_gpt(), test::tiny_llama()}) {
    for (const char* each : {"hf", "run", "back"}) fs::remove_all(dir / each);
    make_model(dir / "hf", config, DType::bf16);
    write_training_checkpoint(dir / "run/checkpoints/iter_0000100", config, DType::bf16);
    checkpoint_to_huggingface(dir / "run", dir / "back", {}, small_blocks());
    EXPECT_EQ(read_tensors(dir / "back"), read_tensors(dir / "hf"));
  }
}

TEST_F(RoundTrip, TheOptimizersCopyIsTakenForF32) {
  write_training_checkpoint(dir / "run/checkpoints/iter_0000100", test::tiny_llama(), DType::bf16);
  HuggingFaceExport how;
  how.dtype = DType::f32;
  checkpoint_to_huggingface(dir / "run", dir / "back", how, small_blocks());
  make_model(dir / "hf", test::tiny_llama(), DType::f32);
  EXPECT_EQ(read_tensors(dir / "back"), read_tensors(dir / "hf"));
  EXPECT_EQ(read_json(dir / "back" / kHuggingFaceConfig)["torch_dtype"], "float32");
}

TEST_F(RoundTrip, AnotherTypeIsRounded) {
  make_model(dir / "hf", test::tiny_llama(), DType::f32);
  edit([](Tensors& t) {
    float* first = reinterpret_cast<float*>(t.at("model.norm.weight").bytes.data());
    first[0] = 1.0039f;
  });
  import();
  HuggingFaceExport how;
  how.dtype = DType::bf16;
  export_as(how);
  const Tensors tensors = read_tensors(dir / "back");
  const Named& norm = tensors.at("model.norm.weight");
  ASSERT_EQ(norm.dtype, DType::bf16);
  uint16_t bits = 0;
  std::memcpy(&bits, norm.bytes.data(), 2);
  EXPECT_EQ(bits, 0x3F80);  // 1.0039 is nearer to 1 than to 1.0078
  EXPECT_EQ(read_json(dir / "back" / kHuggingFaceConfig)["torch_dtype"], "bfloat16");
}

TEST_F(RoundTrip, OfSeveralCheckpointsTheNewestGoodOneIsTaken) {
  Config config = test::tiny_llama();
  write_training_checkpoint(dir / "run/checkpoints/iter_0000100", config, DType::bf16);
  fs::create_directories(dir / "run/checkpoints/iter_0000200");
  const Conversion result =
      checkpoint_to_huggingface(dir / "run", dir / "back", {}, small_blocks());
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("iter_0000200 is not used"), std::string::npos);
  expect_error(ErrorKind::Data, "manifest.json", [&] {
    checkpoint_to_huggingface(dir / "run/checkpoints/iter_0000200", dir / "b", {}, small_blocks());
  });
  expect_error(ErrorKind::Data, "holds no checkpoint",
               [&] { checkpoint_to_huggingface(dir / "nowhere", dir / "b", {}, small_blocks()); });
}

}  // namespace
}  // namespace bev
