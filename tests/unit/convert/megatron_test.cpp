// Checkpoints of Megatron-LM to our own.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoint_survey.h"
#include "checkpoint/safetensors.h"
#include "convert/convert.h"
#include "convert/megatron/megatron_model.h"
#include "convert/megatron/megatron_weights.h"
#include "pipeline/rank_model.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"
#include "support/tiny_models.h"
#include "unit/convert/bit_pattern.h"
#include "unit/convert/megatron_shards.h"

namespace bev {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::MegatronCase;
using test::TemporaryDirectory;
using test::write_megatron_shards;
using Names = MegatronCase::Names;

Config gpt() {
  Config config = test::tiny_gpt();
  config.model.layers = 4;
  return config;
}

// As many key/value heads as heads where the version has no groups.
Config llama(int64_t kv_heads) {
  Config config = test::tiny_llama();
  config.model.layers = 4;
  config.model.heads = 8;
  config.model.kv_heads = kv_heads;
  return config;
}

ConversionOptions blocks_of_100_bytes() {
  ConversionOptions options;
  options.block_bytes = 100;
  return options;
}

class MegatronImport : public testing::Test {
 protected:
  void expect_imported(const MegatronCase& about) {
    const TemporaryDirectory dir;
    write_megatron_shards(dir / "m", about);
    megatron_to_checkpoint(dir / "m", dir / "bev", std::nullopt, blocks_of_100_bytes());
    const CheckpointReader stored(dir.path() / "bev" / "release");
    for (const ParamSpec& spec : model_parameters(about.config)) {
      const CheckpointReader::Tensor* tensor = stored.find(spec.name);
      ASSERT_NE(tensor, nullptr) << spec.name;
      ASSERT_EQ(tensor->shape, spec.shape) << spec.name;
      ASSERT_EQ(tensor->dtype, DType::bf16);
      std::vector<std::byte> bytes(tensor->bytes());
      stored.read(*tensor, whole_of(tensor->shape), DType::bf16, bytes.data());
      EXPECT_EQ(bytes, test::pattern_bytes(spec.name, spec.shape.elements(), 2)) << spec.name;
    }
    EXPECT_EQ(stored.manifest().iteration, 0);
    const ModelConfig model = read_checkpoint_config(stored).model;
    EXPECT_EQ(model.kv_heads > 0 ? model.kv_heads : model.heads, about.config.model.kv_heads > 0
                                                                     ? about.config.model.kv_heads
                                                                     : about.config.model.heads);
    EXPECT_EQ(model.position, about.config.model.position);
    EXPECT_EQ(model.activation, about.config.model.activation);
    EXPECT_EQ(model.norm, about.config.model.norm);
    EXPECT_EQ(model.bias, about.config.model.bias);
    EXPECT_EQ(model.tied, about.config.model.tied);
    EXPECT_EQ(model.family, about.config.model.family);
    EXPECT_EQ(model.decoder_layers, about.config.model.decoder_layers);
    if (model.family == ModelFamily::Bert) {
      EXPECT_EQ(model.binary_head, about.config.model.binary_head);
    }
  }

  // A case whose megatron.json or shards are changed before they are read.
  void expect_refused(ErrorKind kind, const std::string& message,
                      const std::function<void(Json&)>& change) {
    const TemporaryDirectory dir;
    Json json = write_megatron_shards(
        dir / "m", {.config = gpt(), .tensor = 2, .pipeline = 2, .padded_vocab = 32});
    change(json);
    std::ofstream(dir / "m/megatron.json") << json.dump();
    expect_error(kind, message, [&] {
      megatron_to_checkpoint(dir / "m", dir / "bev", std::nullopt, blocks_of_100_bytes());
    });
    EXPECT_FALSE(fs::exists(dir / "bev"));
  }
};

// Fails when a rank's part goes to a wrong place in any layout, or q, k and v are told apart by the
// rules of another version.
TEST_F(MegatronImport, EveryLayoutAndVersionGivesTheSameModel) {
  for (const int64_t tensor : {1, 2}) {
    for (const int64_t pipeline : {1, 2}) {
      for (const double version : {0.0, 1.0, 2.0, 3.0}) {
        SCOPED_TRACE(format("tensor {}, pipeline {}, version {}", tensor, pipeline, version));
        const Names names = version < 2 ? Names::Old : version == 2 ? Names::Legacy : Names::Core;
        MegatronCase about{.config = gpt(),
                           .tensor = tensor,
                           .pipeline = pipeline,
                           .version = version,
                           .names = names,
                           .padded_vocab = 32};
        expect_imported(about);
        about.config = llama(version < 2 ? 8 : 4);
        expect_imported(about);
      }
    }
  }
}

Config bert() {
  Config config = test::tiny_bert();
  config.model.layers = 4;
  return config;
}

// Fails when a head of a BERT has no place or a wrong one, or its bias is not merged from the
// ranks, under the names of any version.
TEST_F(MegatronImport, BertsOfAllVersions) {
  for (const int64_t tensor : {1, 2}) {
    for (const int64_t pipeline : {1, 2}) {
      for (const Names names : {Names::Old, Names::Legacy, Names::Core}) {
        SCOPED_TRACE(format("tensor {}, pipeline {}, names {}", tensor, pipeline, int(names)));
        MegatronCase about{.config = bert(),
                           .tensor = tensor,
                           .pipeline = pipeline,
                           .names = names,
                           .padded_vocab = 32};
        expect_imported(about);
        about.config.model.binary_head = false;
        expect_imported(about);
      }
    }
  }
}

Config small_t5() {
  Config config = test::tiny_t5();
  config.model.head_dim = 6;
  config.model.decoder_layers = 4;
  return config;
}

// Fails when a layer goes to the other side of a T5, keys and values of cross attention change
// places, or the copies of the tables on other stages are not known.
TEST_F(MegatronImport, T5sOfAllVersions) {
  for (const int64_t tensor : {1, 2}) {
    for (const int64_t pipeline : {1, 2, 4}) {
      for (const double version : {0.0, 1.0, 2.0, 3.0}) {
        SCOPED_TRACE(format("tensor {}, pipeline {}, version {}", tensor, pipeline, version));
        const Names names = version < 2 ? Names::Old : version == 2 ? Names::Legacy : Names::Core;
        expect_imported({.config = small_t5(),
                         .tensor = tensor,
                         .pipeline = pipeline,
                         .version = version,
                         .names = names,
                         .padded_vocab = 32});
      }
    }
  }
  expect_imported({.config = small_t5(),
                   .tensor = 2,
                   .pipeline = 2,
                   .chunks = 2,
                   .names = Names::Legacy,
                   .padded_vocab = 32});
}

TEST_F(MegatronImport, T5sThatDoNotFitAreRefused) {
  const auto refused = [&](ErrorKind kind, const std::string& message, int64_t pipeline,
                           const std::function<void(Json&, const fs::path&)>& change) {
    const TemporaryDirectory dir;
    Json json = write_megatron_shards(
        dir / "m", {.config = small_t5(), .pipeline = pipeline, .padded_vocab = 32});
    change(json, dir / "m");
    std::ofstream(dir / "m/megatron.json") << json.dump();
    expect_error(kind, message, [&] {
      megatron_to_checkpoint(dir / "m", dir / "bev", std::nullopt, blocks_of_100_bytes());
    });
  };
  const auto args = [](const char* name, const Json& value) {
    return [=](Json& json, const fs::path&) { json["args"][name] = value; };
  };
  refused(ErrorKind::Usage, "position_embedding_type = \"rope\" is not supported", 1,
          args("position_embedding_type", "rope"));
  refused(ErrorKind::Usage, "untie_embeddings_and_output_weights", 1,
          args("untie_embeddings_and_output_weights", true));
  refused(ErrorKind::Usage, "qk_layernorm", 1, args("qk_layernorm", true));
  refused(ErrorKind::Data, "the shards have 4 layers of the decoder, the model has 5", 1,
          args("decoder_num_layers", 5));
  refused(ErrorKind::Data, "the shards have 2 layers of the encoder, the model has 3", 1,
          args("encoder_num_layers", 3));
  refused(ErrorKind::Data, "is of a layer beyond 2", 1,
          [](Json& json, const fs::path&) { json["args"].erase("decoder_num_layers"); });
  refused(ErrorKind::Data, "is a copy of \"model.embedding.position_embeddings.weight\"", 2,
          [](Json&, const fs::path& dir) {
            const fs::path file = dir / "mp_rank_00_001.safetensors";
            std::string content = read_text(file);
            const SafetensorsReader reader(file);
            content[reader.at("model.embedding.position_embeddings.weight").begin + 5] ^= 1;
            std::ofstream(dir / "changed", std::ios::binary) << content;
            fs::rename(dir / "changed", file);
          });
}

// Fails when the import of a BERT that was trained with --bert-no-binary-head invents token types.
TEST_F(MegatronImport, ABertWithoutBinaryHeadHasNoTokenTypes) {
  const TemporaryDirectory dir;
  MegatronCase about{.config = bert(), .tensor = 2, .padded_vocab = 32};
  about.config.model.binary_head = false;
  write_megatron_shards(dir / "m", about);
  megatron_to_checkpoint(dir / "m", dir / "bev", std::nullopt, blocks_of_100_bytes());
  const CheckpointReader stored(dir.path() / "bev" / "release");
  EXPECT_EQ(stored.find("embedding.types.weight"), nullptr);
  const ModelConfig model = read_checkpoint_config(stored).model;
  EXPECT_EQ(model.family, ModelFamily::Bert);
  EXPECT_EQ(model.norm_placement, NormPlacement::Pre);
  EXPECT_EQ(model.head_activation, Activation::GeluErf);
  EXPECT_FALSE(model.binary_head);
}

// Fails when --openai-gelu is forgotten for the LM head.
TEST_F(MegatronImport, TheGeluOfABertsLmHead) {
  const TemporaryDirectory dir;
  Json json = write_megatron_shards(dir / "m", {.config = bert(), .padded_vocab = 32});
  json["args"]["openai_gelu"] = true;
  std::ofstream(dir / "m/megatron.json") << json.dump();
  megatron_to_checkpoint(dir / "m", dir / "bev", std::nullopt, blocks_of_100_bytes());
  const CheckpointReader stored(dir.path() / "bev" / "release");
  const ModelConfig model = read_checkpoint_config(stored).model;
  EXPECT_EQ(model.activation, Activation::GeluTanh);
  EXPECT_EQ(model.head_activation, Activation::GeluTanh);
}

TEST_F(MegatronImport, BertsWithForeignSettingsAreRefused) {
  const auto refused = [&](const std::string& message, const char* name, const Json& value) {
    const TemporaryDirectory dir;
    Json json = write_megatron_shards(dir / "m", {.config = bert(), .padded_vocab = 32});
    json["args"][name] = value;
    std::ofstream(dir / "m/megatron.json") << json.dump();
    expect_error(ErrorKind::Usage, message, [&] {
      megatron_to_checkpoint(dir / "m", dir / "bev", std::nullopt, blocks_of_100_bytes());
    });
  };
  refused("position_embedding_type", "position_embedding_type", "rope");
  refused("untie_embeddings_and_output_weights", "untie_embeddings_and_output_weights", true);
}

// Fails when the stages of a rank are taken for neighbours in the model.
TEST_F(MegatronImport, VirtualStages) {
  for (const Names names : {Names::Legacy, Names::Core})
    expect_imported({.config = gpt(),
                     .tensor = 2,
                     .pipeline = 2,
                     .chunks = 2,
                     .names = names,
                     .padded_vocab = 32});
}

// Without a word about the vocabulary all rows are kept; the flag says otherwise.
TEST_F(MegatronImport, TheVocabularyWithoutPadding) {
  const TemporaryDirectory dir;
  Json json = write_megatron_shards(dir / "m", {.config = gpt(), .tensor = 2, .padded_vocab = 32});
  json["args"].erase("vocab_size");
  std::ofstream(dir / "m/megatron.json") << json.dump();
  const auto rows = [&](std::optional<int64_t> vocab) {
    megatron_to_checkpoint(dir / "m", dir / "bev", vocab, {});
    return CheckpointReader(dir.path() / "bev" / "release")
        .find("embedding.tokens.weight")
        ->shape[0];
  };
  EXPECT_EQ(rows(std::nullopt), 32);
  EXPECT_EQ(rows(29), 29);
  expect_error(ErrorKind::Data, "has 32 rows on all ranks, the vocabulary 33", [&] { rows(33); });
}

TEST_F(MegatronImport, DescriptionsThatCannotBeAreRefused) {
  const auto args = [](const char* name, const Json& value) {
    return [=](Json& json) { json["args"][name] = value; };
  };
  expect_refused(ErrorKind::Data, "num_layers is missing",
                 [](Json& json) { json["args"].erase("num_layers"); });
  expect_refused(ErrorKind::Data, "the shards have 4 layers, the model has 5",
                 args("num_layers", 5));
  expect_refused(ErrorKind::Usage, "num_experts = 8 is not supported", args("num_experts", 8));
  expect_refused(ErrorKind::Usage, "rotary_interleaved", [](Json& json) {
    json["args"]["position_embedding_type"] = "rope";
    json["args"]["rotary_interleaved"] = true;
  });
  expect_refused(ErrorKind::Usage, "apply_layernorm_1p", args("apply_layernorm_1p", true));
  expect_refused(ErrorKind::Data, "is [24, 16], a rank of the model has [72, 16]",
                 args("kv_channels", 24));
  expect_refused(ErrorKind::Data, "older than groups of queries", [](Json& json) {
    json["args"]["num_query_groups"] = 1;
    json["checkpoint_version"] = 1.0;
  });
  expect_refused(ErrorKind::Data, "do not divide over 2 tensor ranks", args("num_query_groups", 1));
  expect_refused(ErrorKind::Data, "belongs to no parameter of the model",
                 args("position_embedding_type", "rope"));
  expect_refused(ErrorKind::Data, "is not a list of 2 x 2 files",
                 [](Json& json) { json["shards"].erase(0); });
  expect_refused(ErrorKind::Data, "are of the same rank",
                 [](Json& json) { json["shards"][1]["tensor"] = 0; });
  expect_refused(ErrorKind::Data, "is not the name of a file in this folder",
                 [](Json& json) { json["shards"][1]["file"] = "../elsewhere"; });
  expect_refused(ErrorKind::Data, "the format is 2", [](Json& json) { json["format"] = 2; });
}

// The last stage of a tied model has a copy of the embedding, which must be one.
TEST_F(MegatronImport, TheCopyOfATiedEmbeddingIsCompared) {
  const TemporaryDirectory dir;
  write_megatron_shards(dir / "m", {.config = gpt(), .pipeline = 2, .padded_vocab = 29});
  const fs::path file = dir / "m/mp_rank_00_001.safetensors";
  std::string content = read_text(file);
  const SafetensorsReader reader(file);
  content[reader.at("model.output_layer.weight").begin + 5] ^= 1;
  std::ofstream(dir / "m/changed.safetensors", std::ios::binary) << content;
  fs::rename(dir / "m/changed.safetensors", file);
  expect_error(
      ErrorKind::Data,
      "is a copy of \"model.embedding.word_embeddings.weight\", but is not equal to it",
      [&] { megatron_to_checkpoint(dir / "m", dir / "bev", std::nullopt, blocks_of_100_bytes()); });
}

TEST_F(MegatronImport, AParameterThatNoRankHasIsNamed) {
  const TemporaryDirectory dir;
  Json json = write_megatron_shards(dir / "m", {.config = gpt(), .padded_vocab = 29});
  json["args"]["untie_embeddings_and_output_weights"] = true;
  std::ofstream(dir / "m/megatron.json") << json.dump();
  expect_error(ErrorKind::Data, "no shard has a tensor for the parameter \"head.weight\"", [&] {
    megatron_to_checkpoint(dir / "m", dir / "bev", std::nullopt, blocks_of_100_bytes());
  });
}

TEST_F(MegatronImport, WithoutTheExportThereIsAHint) {
  const TemporaryDirectory dir;
  expect_error(ErrorKind::Data, "tools/megatron_export.py", [&] {
    megatron_to_checkpoint(dir.path(), dir / "bev", std::nullopt, blocks_of_100_bytes());
  });
}

TEST(MegatronNames, OfAllVersions) {
  const auto ours = [](const char* name) {
    const auto found = megatron_name(name);
    return found ? format("{} {}", found->ours, found->layer) : "none";
  };
  EXPECT_EQ(ours("language_model.transformer.layers.11.attention.query_key_value.bias"),
            "layers.*.attention.qkv.bias 11");
  EXPECT_EQ(ours("language_model.encoder.layers.0.post_attention_norm.weight"),
            "layers.*.norm2.weight 0");
  EXPECT_EQ(ours("decoder.layers.3.self_attention.linear_qkv.layer_norm_bias"),
            "layers.*.norm1.bias 3");
  EXPECT_EQ(ours("decoder.layers.3.pre_mlp_layernorm.weight"), "layers.*.norm2.weight 3");
  EXPECT_EQ(ours("decoder.final_layernorm.weight"), "final_norm.weight -1");
  EXPECT_EQ(ours("word_embeddings_for_head.weight"), "head.weight -1");
  EXPECT_EQ(ours("language_model.embedding.tokentype_embeddings.weight"),
            "embedding.types.weight -1");
  EXPECT_EQ(ours("lm_head.layernorm.bias"), "lm_head.norm.bias -1");
  EXPECT_EQ(ours("lm_head.bias"), "lm_head.bias -1");
  EXPECT_EQ(ours("output_layer.bias"), "lm_head.bias -1");
  EXPECT_EQ(ours("language_model.pooler.dense.weight"), "binary_head.pooler.weight -1");
  EXPECT_EQ(ours("binary_head.weight"), "binary_head.output.weight -1");
  const auto of_t5 = [](const char* name) {
    const auto found = megatron_name(name, true);
    return found ? format("{} {}", found->ours, found->layer) : "none";
  };
  EXPECT_EQ(of_t5("language_model.encoder.layers.1.post_attention_norm.weight"),
            "encoder.layers.*.norm2.weight 1");
  EXPECT_EQ(of_t5("language_model.decoder.layers.1.post_attention_norm.weight"),
            "decoder.layers.*.cross_norm.weight 1");
  EXPECT_EQ(of_t5("language_model.decoder.layers.1.inter_attention.key_value.bias"),
            "decoder.layers.*.cross_attention.kv.bias 1");
  EXPECT_EQ(of_t5("decoder.layers.2.cross_attention.linear_proj.weight"),
            "decoder.layers.*.cross_attention.out.weight 2");
  EXPECT_EQ(of_t5("language_model.decoder.final_norm.bias"), "decoder.final_norm.bias -1");
  EXPECT_EQ(of_t5("language_model.embedding.word_embeddings.weight"), "embedding.tokens.weight -1");
  EXPECT_EQ(of_t5("language_model.encoder.layers.0.inter_attention.query.weight"), "none");
  for (const char* name :
       {"decoder.layers.x.input_norm.weight", "decoder.layers.1", "decoder.layers.1.",
        "decoder.layers.99999999999999999999.input_norm.weight",
        "decoder.layers.-1.input_norm.bias", "lm_head.dense", "", ".weight",
        "decoder.layers.1.mlp.linear_fc1_weight"})
    EXPECT_EQ(ours(name), "none") << name;
  EXPECT_TRUE(is_megatron_buffer("model.decoder.layers.0.mlp.linear_fc1._extra_state"));
  EXPECT_FALSE(is_megatron_buffer("model.decoder.layers.0.mlp.linear_fc1.weight"));
}

// What Megatron-LM's settings mean here.
TEST(MegatronModel, Settings) {
  Json json{{"format", 1},
            {"args",
             {{"num_layers", 2},
              {"hidden_size", 64},
              {"num_attention_heads", 4},
              {"max_position_embeddings", 128},
              {"padded_vocab_size", 256}}},
            {"tensor", 1},
            {"pipeline", 1},
            {"shards", {{{"file", "a"}, {"tensor", 0}, {"pipeline", 0}}}}};
  const auto parsed = [&] {
    return parse_megatron_model(parse_json(json.dump(), "test.json"), "test.json");
  };
  const auto model = [&] { return parsed().model; };
  EXPECT_EQ(model().ffn, 256);
  EXPECT_EQ(model().vocab, 256);
  EXPECT_EQ(model().activation, Activation::GeluTanh);
  EXPECT_EQ(model().position, PositionKind::Learned);
  EXPECT_TRUE(model().tied);
  EXPECT_EQ(parsed().order, QkvOrder::ThreeHeads);
  json["checkpoint_version"] = 1.0;
  EXPECT_EQ(parsed().order, QkvOrder::HeadsLast);
  json["checkpoint_version"] = 2.0;
  EXPECT_EQ(parsed().order, QkvOrder::Groups);
  Json& args = json["args"];
  args["bias_gelu_fusion"] = false;
  EXPECT_EQ(model().activation, Activation::GeluErf);
  args["squared_relu"] = true;
  EXPECT_EQ(model().activation, Activation::SquaredRelu);
  // Without groups the number of them, which has a default, means nothing.
  args["num_query_groups"] = 1;
  args["group_query_attention"] = false;
  EXPECT_EQ(model().kv_heads, 4);
  args["group_query_attention"] = true;
  EXPECT_EQ(model().kv_heads, 1);
  args["add_bias_linear"] = false;
  args["add_qkv_bias"] = true;
  EXPECT_EQ(model().bias, BiasKind::Qkv);
  args["position_embedding_type"] = "rope";
  args["use_rope_scaling"] = true;
  args["rope_scaling_factor"] = 32.0;
  EXPECT_EQ(model().rope_scaling, RopeScaling::Llama3);
  EXPECT_EQ(model().rope_factor, 32);
  args["window_size"] = {127, 0};
  EXPECT_EQ(model().window, 128);
  args["window_size"] = {127, 1};
  expect_error(ErrorKind::Usage, "window_size", model);
}

}  // namespace
}  // namespace bev
