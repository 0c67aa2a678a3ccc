// config.json as published models have it, and as nobody should.
#include "convert/huggingface/huggingface_config.h"

#include <gtest/gtest.h>

#include "config/resolve.h"
#include "support/expect_error.h"
#include "support/tiny_models.h"

namespace bev {
namespace {

using test::expect_error;

HuggingFaceModel parse(const std::string& text) {
  return parse_huggingface_config(parse_json(text, "config.json"), "config.json");
}

const std::string kGpt2 = R"({
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1,
  "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
  "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12,
  "n_layer": 12, "n_positions": 1024, "resid_pdrop": 0.1, "vocab_size": 50257,
  "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}})";

const std::string kLlama31 = R"({
  "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
  "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02, "intermediate_size": 14336,
  "max_position_embeddings": 131072, "mlp_bias": false, "model_type": "llama",
  "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "pretraining_tp": 1,
  "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0,
  "high_freq_factor": 4.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"},
  "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
  "vocab_size": 128256})";

// google/t5-v1_1-small
const std::string kT5v11 = R"({
  "architectures": ["T5ForConditionalGeneration"], "d_ff": 1024, "d_kv": 64, "d_model": 512,
  "decoder_start_token_id": 0, "dropout_rate": 0.1, "eos_token_id": 1,
  "feed_forward_proj": "gated-gelu", "initializer_factor": 1.0, "is_encoder_decoder": true,
  "layer_norm_epsilon": 1e-06, "model_type": "t5", "num_decoder_layers": 8, "num_heads": 6,
  "num_layers": 8, "output_past": true, "pad_token_id": 0, "relative_attention_num_buckets": 32,
  "tie_word_embeddings": false, "vocab_size": 32128})";

// A T5 in the fewest words, which is a 1.0.
std::string t5(const std::string& more = "") {
  return R"({"model_type":"t5","d_model":64,"d_kv":12,"d_ff":96,"num_layers":2,"num_heads":4,)"
         R"("vocab_size":100)" +
         (more.empty() ? "" : "," + more) + "}";
}

// A llama in the fewest words.
std::string llama(const std::string& more = "", const std::string& type = "llama") {
  return R"({"model_type":")" + type + R"(","hidden_size":64,"num_hidden_layers":2,)" +
         R"("num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":96,"vocab_size":100,)" +
         R"("max_position_embeddings":32)" + (more.empty() ? "" : "," + more) + "}";
}

// Fails when a name of the GPT-2 spelling is read into the wrong field.
TEST(HuggingFaceConfig, ReadsGpt2) {
  const auto [family, m, has_heads, ids] = parse(kGpt2);
  EXPECT_EQ(family, HuggingFaceFamily::Gpt2);
  EXPECT_EQ(m.layers, 12);
  EXPECT_EQ(m.width, 768);
  EXPECT_EQ(m.heads, 12);
  EXPECT_EQ(m.kv_heads, 12);
  EXPECT_EQ(m.head_dim, 64);
  EXPECT_EQ(m.ffn, 3072);
  EXPECT_EQ(m.vocab, 50257);
  EXPECT_EQ(m.positions, 1024);
  EXPECT_EQ(m.norm, NormKind::LayerNorm);
  EXPECT_EQ(m.activation, Activation::GeluTanh);
  EXPECT_EQ(m.position, PositionKind::Learned);
  EXPECT_EQ(m.bias, BiasKind::All);
  EXPECT_TRUE(m.tied);
  EXPECT_EQ(m.hidden_dropout, 0.1);
}

TEST(HuggingFaceConfig, ReadsLlama31) {
  const auto [family, m, has_heads, ids] = parse(kLlama31);
  EXPECT_EQ(family, HuggingFaceFamily::Llama);
  EXPECT_EQ(m.kv_heads, 8);
  EXPECT_EQ(m.head_dim, 128);
  EXPECT_EQ(m.ffn, 14336);
  EXPECT_EQ(m.norm, NormKind::RmsNorm);
  EXPECT_EQ(m.norm_eps, 1e-5);
  EXPECT_EQ(m.activation, Activation::SwiGlu);
  EXPECT_EQ(m.rope_base, 500000);
  EXPECT_EQ(m.rope_scaling, RopeScaling::Llama3);
  EXPECT_EQ(m.rope_factor, 8);
  EXPECT_EQ(m.rope_low, 1);
  EXPECT_EQ(m.rope_high, 4);
  EXPECT_EQ(m.rope_original_positions, 8192);
  EXPECT_EQ(m.bias, BiasKind::None);
  EXPECT_FALSE(m.tied);
  EXPECT_EQ(m.attention_dropout, 0);
}

// Fails when a field of a T5 is read into the wrong one, or a 1.1 is taken for a 1.0.
TEST(HuggingFaceConfig, ReadsT5) {
  const auto [family, m, has_heads, ids] = parse(kT5v11);
  EXPECT_EQ(family, HuggingFaceFamily::T5);
  EXPECT_EQ(m.family, ModelFamily::T5);
  EXPECT_EQ(m.layers, 8);
  EXPECT_EQ(m.decoder_layers, 8);
  EXPECT_EQ(m.width, 512);
  EXPECT_EQ(m.heads, 6);
  EXPECT_EQ(m.head_dim, 64);
  EXPECT_EQ(m.ffn, 1024);
  EXPECT_EQ(m.vocab, 32128);
  EXPECT_EQ(m.norm, NormKind::RmsNorm);
  EXPECT_EQ(m.norm_eps, 1e-6);
  EXPECT_EQ(m.activation, Activation::GeGluTanh);
  EXPECT_EQ(m.position, PositionKind::Relative);
  EXPECT_EQ(m.relative_buckets, 32);
  EXPECT_EQ(m.relative_distance, 128);
  EXPECT_EQ(m.bias, BiasKind::None);
  EXPECT_FALSE(m.tied || m.scale_head_input || m.scale_attention || m.head_bias);
  EXPECT_EQ(m.hidden_dropout, 0.1);
  EXPECT_EQ(m.attention_dropout, 0.1);
  EXPECT_EQ(ids, DecoderIds{});
  const ModelConfig old = parse(t5()).model;
  EXPECT_EQ(old.decoder_layers, 2);
  EXPECT_EQ(old.activation, Activation::Relu);
  EXPECT_TRUE(old.tied && old.scale_head_input);
  EXPECT_EQ(parse(t5(R"("num_decoder_layers":3)")).model.decoder_layers, 3);
  EXPECT_EQ(parse(t5(R"("relative_attention_max_distance":20)")).model.relative_distance, 20);
  EXPECT_EQ(parse(t5(R"("relative_attention_num_buckets":8)")).model.relative_buckets, 8);
  EXPECT_FALSE(parse(t5(R"("scale_decoder_outputs":false)")).model.scale_head_input);
  const auto activation = [](const std::string& more) { return parse(t5(more)).model.activation; };
  EXPECT_EQ(activation(R"("feed_forward_proj":"gated-silu")"), Activation::SwiGlu);
  EXPECT_EQ(activation(R"("feed_forward_proj":"gelu")"), Activation::GeluErf);
  EXPECT_EQ(
      activation(
          R"("feed_forward_proj":"gated-gelu","is_gated_act":true,"dense_act_fn":"gelu_new")"),
      Activation::GeGluTanh);
  const DecoderIds read =
      parse(t5(R"("decoder_start_token_id":5,"eos_token_id":[6,7],"pad_token_id":8)")).ids;
  EXPECT_EQ(read, (DecoderIds{.begin = 5, .end = 6, .pad = 8}));
  EXPECT_EQ(parse(t5(R"("pad_token_id":8)")).ids.begin, 8);
}

// Fails when only one of the two spellings is understood.
TEST(HuggingFaceConfig, BothSpellingsOfRopeAreOne) {
  EXPECT_EQ(parse(llama(R"("rope_theta":50000.0,"rope_scaling":null)")).model.rope_base, 50000);
  EXPECT_EQ(parse(llama(R"("rope_parameters":{"rope_theta":50000.0,"rope_type":"default"})"))
                .model.rope_base,
            50000);
  EXPECT_EQ(parse(llama()).model.rope_base, 10000);
  const ModelConfig scaled =
      parse(
          llama(
              R"("rope_parameters":{"rope_theta":5e5,"rope_type":"llama3","factor":4,)"
              R"("low_freq_factor":2,"high_freq_factor":3,"original_max_position_embeddings":16})"))
          .model;
  EXPECT_EQ(scaled.rope_scaling, RopeScaling::Llama3);
  EXPECT_EQ(scaled.rope_base, 5e5);
  EXPECT_EQ(scaled.rope_factor, 4);
  EXPECT_EQ(scaled.rope_low, 2);
  EXPECT_EQ(scaled.rope_high, 3);
  EXPECT_EQ(scaled.rope_original_positions, 16);
  const ModelConfig old =
      parse(
          llama(
              R"("rope_theta":5e5,"rope_scaling":{"type":"llama3","factor":4,)"
              R"("low_freq_factor":2,"high_freq_factor":3,"original_max_position_embeddings":16})"))
          .model;
  EXPECT_EQ(old.rope_scaling, RopeScaling::Llama3);
  EXPECT_EQ(old.rope_base, 5e5);
}

// Fails when a default of one family is applied to all.
TEST(HuggingFaceConfig, DefaultsBelongToTheFamily) {
  EXPECT_FALSE(parse(llama()).model.tied);
  EXPECT_TRUE(parse(llama(R"("tie_word_embeddings":true)")).model.tied);
  EXPECT_EQ(parse(llama()).model.norm_eps, 1e-6);
  EXPECT_EQ(parse(llama()).model.window, 0);
  EXPECT_EQ(parse(llama("", "mistral")).model.window, 4096);
  EXPECT_EQ(parse(llama(R"("sliding_window":null)", "mistral")).model.window, 0);
  EXPECT_EQ(parse(llama(R"("sliding_window":64)", "mistral")).model.window, 64);
  EXPECT_EQ(parse(llama("", "qwen2")).model.bias, BiasKind::Qkv);
  EXPECT_EQ(parse(llama("", "qwen2")).model.window, 0);
  EXPECT_EQ(parse(llama(R"("sliding_window":64)", "qwen2")).model.window, 0);
  EXPECT_EQ(parse(llama("", "qwen3")).model.head_dim, 128);
  EXPECT_EQ(parse(llama(R"("head_dim":24)", "qwen3")).model.head_dim, 24);
  EXPECT_TRUE(parse(llama("", "qwen3")).model.qk_norm);
  EXPECT_FALSE(parse(llama("", "qwen2")).model.qk_norm);
  EXPECT_EQ(parse(llama(R"("attention_bias":true,"mlp_bias":true)")).model.bias, BiasKind::All);
  EXPECT_EQ(parse(llama()).model.vocab_multiple, 1);
}

// Fails when Qwen's list of windowed layers is taken for all or for none.
TEST(HuggingFaceConfig, QwenWindowOfAllLayersOrNone) {
  const auto window = [](const std::string& more) {
    return parse(llama(R"("use_sliding_window":true,"sliding_window":9,)" + more, "qwen2"))
        .model.window;
  };
  EXPECT_EQ(window(R"("max_window_layers":0)"), 9);
  EXPECT_EQ(window(R"("max_window_layers":2)"), 0);
  EXPECT_EQ(window(R"("max_window_layers":28)"), 0);
  EXPECT_EQ(window(R"("layer_types":["sliding_attention","sliding_attention"])"), 9);
  EXPECT_EQ(window(R"("layer_types":["full_attention","full_attention"])"), 0);
  expect_error(ErrorKind::Usage, "max_window_layers", [&] { window(R"("max_window_layers":1)"); });
}

// Each line fails when the field is ignored instead of refused.
TEST(HuggingFaceConfig, WhatWeDoNotHaveIsRefusedByName) {
  const auto refuses = [](const std::string& field, const std::string& text) {
    expect_error(ErrorKind::Usage, field, [&] { parse(text); });
  };
  refuses("model_type = \"mamba\"", R"({"model_type":"mamba"})");
  refuses("rope_type = \"yarn\"", llama(R"("rope_parameters":{"rope_type":"yarn","factor":4})"));
  refuses("type = \"linear\"", llama(R"("rope_scaling":{"type":"linear","factor":4})"));
  refuses("rope_parameters",
          llama(R"("rope_parameters":{"full_attention":{},"sliding_attention":{}})"));
  refuses("partial_rotary_factor", llama(R"("partial_rotary_factor":0.5)"));
  refuses("partial_rotary_factor", llama(R"("rope_parameters":{"partial_rotary_factor":0.5})"));
  refuses("hidden_act = \"relu\"", llama(R"("hidden_act":"relu")"));
  refuses("attention_bias", llama(R"("attention_bias":true)"));
  refuses("attention_bias", llama(R"("attention_bias":true)", "qwen3"));
  refuses("quantization_config", llama(R"("quantization_config":{"bits":4})"));
  refuses("architectures", t5(R"("architectures":["T5EncoderModel"])"));
  refuses("is_encoder_decoder = false", t5(R"("is_encoder_decoder":false)"));
  refuses("feed_forward_proj = \"gated-relu\"", t5(R"("feed_forward_proj":"gated-relu")"));
  refuses("feed_forward_proj = \"silu\"", t5(R"("feed_forward_proj":"silu")"));
  refuses("is_gated_act = true", t5(R"("is_gated_act":true)"));
  refuses("dense_act_fn = \"gelu\"",
          t5(R"("feed_forward_proj":"gated-gelu","dense_act_fn":"gelu")"));
  refuses("scale_decoder_outputs = true",
          t5(R"("tie_word_embeddings":false,"scale_decoder_outputs":true)"));
  refuses("relative_attention_num_buckets = 3", t5(R"("relative_attention_num_buckets":3)"));
  refuses("relative_attention_max_distance = 16", t5(R"("relative_attention_max_distance":16)"));
  const auto gpt2 = [](const std::string& more) { return "{" + more + "," + kGpt2.substr(1); };
  refuses("scale_attn_weights", gpt2(R"("scale_attn_weights":false)"));
  refuses("scale_attn_by_inverse_layer_idx", gpt2(R"("scale_attn_by_inverse_layer_idx":true)"));
  refuses("add_cross_attention", gpt2(R"("add_cross_attention":true)"));
  std::string silu = kGpt2, dropout = kGpt2;
  silu.replace(silu.find("gelu_new"), 8, "silu");
  refuses("activation_function = \"silu\"", silu);
  dropout.replace(dropout.find("\"embd_pdrop\": 0.1"), 17, "\"embd_pdrop\": 0.2");
  refuses("embd_pdrop", dropout);
}

// Each line fails when the value is used unchecked.
TEST(HuggingFaceConfig, NonsenseIsADataError) {
  const auto refuses = [](const std::string& what, const std::string& text) {
    expect_error(ErrorKind::Data, what, [&] { parse(text); });
  };
  const auto with = [](const std::string& name, const std::string& value) {
    Json j = parse_json(llama(), "f");
    j[name] = parse_json(value, "f");
    return j.dump();
  };
  refuses("not a JSON object", "[]");
  refuses("model_type is missing", "{}");
  refuses("model_type = 3", R"({"model_type":3})");
  refuses("hidden_size is missing", R"({"model_type":"llama","num_hidden_layers":2})");
  refuses("hidden_size = 0", with("hidden_size", "0"));
  refuses("hidden_size = -64", with("hidden_size", "-64"));
  refuses("hidden_size = 64.0", with("hidden_size", "64.0"));
  refuses("hidden_size = \"64\"", with("hidden_size", "\"64\""));
  refuses("hidden_size = 18446744073709551615", with("hidden_size", "18446744073709551615"));
  refuses("vocab_size = 4611686018427387904", with("vocab_size", "4611686018427387904"));
  refuses("not a multiple of num_attention_heads", with("hidden_size", "66"));
  refuses("not a multiple of num_key_value_heads", with("num_key_value_heads", "3"));
  refuses("rms_norm_eps = \"x\"", with("rms_norm_eps", "\"x\""));
  refuses("tie_word_embeddings = 1", with("tie_word_embeddings", "1"));
  refuses("model.norm_eps would be -1", with("rms_norm_eps", "-1"));
  refuses("model.rope_base would be 0", with("rope_theta", "0"));
  refuses("model.attention_dropout would be 1", with("attention_dropout", "1"));
  refuses("model.head_dim would be 1024", with("head_dim", "1024"));
  refuses("factor is missing", with("rope_scaling", R"({"rope_type":"llama3"})"));
  refuses("d_kv is missing", R"({"model_type":"t5","num_layers":2,"d_model":8,"num_heads":2})");
  refuses("model.hidden_dropout would be 1", t5(R"("dropout_rate":1)"));
  refuses("decoder_start_token_id = 100 is not an id below 100",
          t5(R"("decoder_start_token_id":100)"));
  refuses("eos_token_id = -1", t5(R"("eos_token_id":-1)"));
}

// What is written reads back as the same model. Fails when a field is written and read under
// different names, or not at all.
TEST(HuggingFaceConfig, WhatIsWrittenReadsBack) {
  const auto check = [](HuggingFaceFamily family, Config c) {
    const auto [got, m, has_heads, ids] = parse(huggingface_config(c, DType::f32).dump());
    const ModelShape shape = resolve_model(c);
    EXPECT_EQ(got, family);
    EXPECT_TRUE(has_heads);
    EXPECT_EQ(m.layers, shape.layers);
    EXPECT_EQ(m.width, shape.width);
    EXPECT_EQ(m.heads, shape.heads);
    EXPECT_EQ(m.kv_heads, shape.kv_heads);
    EXPECT_EQ(m.head_dim, shape.head_dim);
    EXPECT_EQ(m.ffn, shape.ffn);
    EXPECT_EQ(m.vocab, shape.vocab);
    EXPECT_EQ(m.positions, got == HuggingFaceFamily::T5 ? 0 : shape.positions);
    EXPECT_EQ(m.norm, c.model.norm);
    EXPECT_EQ(m.norm_eps, c.model.norm_eps);
    EXPECT_EQ(m.activation, c.model.activation);
    EXPECT_EQ(m.position, c.model.position);
    EXPECT_EQ(m.rope_base, c.model.rope_base);
    EXPECT_EQ(m.rope_scaling, c.model.rope_scaling);
    if (m.rope_scaling != RopeScaling::None) {
      EXPECT_EQ(m.rope_factor, c.model.rope_factor);
      EXPECT_EQ(m.rope_low, c.model.rope_low);
      EXPECT_EQ(m.rope_high, c.model.rope_high);
      EXPECT_EQ(m.rope_original_positions, c.model.rope_original_positions);
    }
    EXPECT_EQ(m.bias, c.model.bias);
    EXPECT_EQ(m.tied, c.model.tied);
    EXPECT_EQ(m.qk_norm, c.model.qk_norm);
    EXPECT_EQ(m.window, c.model.window);
    EXPECT_EQ(m.init_std, c.model.init_std);
    EXPECT_EQ(m.attention_dropout, c.model.attention_dropout);
    EXPECT_EQ(m.family, c.model.family);
    EXPECT_EQ(m.scale_attention, c.model.scale_attention);
    EXPECT_EQ(m.scale_head_input, c.model.scale_head_input);
    if (got != HuggingFaceFamily::T5) return;
    EXPECT_EQ(m.decoder_layers, shape.decoder_layers);
    EXPECT_EQ(m.head_bias, c.model.head_bias);
    EXPECT_EQ(m.relative_buckets, c.model.relative_buckets);
    EXPECT_EQ(m.relative_distance, c.model.relative_distance);
  };
  const auto changed = [](Config c, auto change) {
    change(c.model);
    return c;
  };
  const Config gpt = test::tiny_gpt(), llama_model = test::tiny_llama();
  check(HuggingFaceFamily::Gpt2, gpt);
  for (const Activation a : {Activation::GeluErf, Activation::Relu, Activation::SquaredRelu}) {
    check(HuggingFaceFamily::Gpt2, changed(gpt, [&](ModelConfig& m) {
            m.activation = a;
            m.tied = false;
            m.hidden_dropout = 0.25;
          }));
  }
  check(HuggingFaceFamily::Llama, llama_model);
  check(HuggingFaceFamily::Llama, changed(llama_model, [](ModelConfig& m) {
          m.bias = BiasKind::All;
          m.activation = Activation::GeGluErf;
          m.rope_scaling = RopeScaling::Llama3;
          m.rope_factor = 3;
          m.rope_low = 2;
          m.rope_high = 7;
          m.rope_original_positions = 5;
          m.rope_base = 777;
        }));
  check(HuggingFaceFamily::Mistral, changed(llama_model, [](ModelConfig& m) {
          m.window = 3;
          m.head_dim = 6;
        }));
  check(HuggingFaceFamily::Qwen2, changed(llama_model, [](ModelConfig& m) {
          m.bias = BiasKind::Qkv;
          m.tied = true;
        }));
  check(HuggingFaceFamily::Qwen2, changed(llama_model, [](ModelConfig& m) {
          m.bias = BiasKind::Qkv;
          m.window = 4;
        }));
  check(HuggingFaceFamily::Qwen3, changed(llama_model, [](ModelConfig& m) {
          m.qk_norm = true;
          m.activation = Activation::GeGluTanh;
          m.attention_dropout = 0.5;
        }));
  const Config t5_model = test::tiny_huggingface_t5();
  check(HuggingFaceFamily::T5, changed(t5_model, [](ModelConfig& m) {
          m.scale_head_input = true;
          m.decoder_layers = 3;
          m.hidden_dropout = m.attention_dropout = 0.25;
        }));
  for (const Activation a : {Activation::GeGluTanh, Activation::GeGluErf, Activation::SwiGlu,
                             Activation::GeluTanh, Activation::SquaredRelu}) {
    check(HuggingFaceFamily::T5, changed(t5_model, [&](ModelConfig& m) {
            m.activation = a;
            m.tied = false;
            m.ffn = 20;
          }));
  }
}

// Fails when a model is written as a family that computes something else.
TEST(HuggingFaceConfig, AModelThatFitsNoFamilyIsToldWhy) {
  const auto refuses = [](const std::string& field, Config c, auto change) {
    change(c.model);
    expect_error(ErrorKind::Usage, field, [&] { huggingface_family(c); });
  };
  const Config gpt = test::tiny_gpt(), llama_model = test::tiny_llama();
  refuses("model.position = none", gpt, [](ModelConfig& m) { m.position = PositionKind::None; });
  refuses("model.norm = rmsnorm", gpt, [](ModelConfig& m) { m.norm = NormKind::RmsNorm; });
  refuses("model.bias = none", gpt, [](ModelConfig& m) { m.bias = BiasKind::None; });
  refuses("model.activation = swiglu", gpt,
          [](ModelConfig& m) { m.activation = Activation::SwiGlu; });
  refuses("model.qk_norm = true", gpt, [](ModelConfig& m) { m.qk_norm = true; });
  refuses("model.window = 3", gpt, [](ModelConfig& m) { m.window = 3; });
  refuses("model.kv_heads = 1", gpt, [](ModelConfig& m) { m.kv_heads = 1; });
  refuses("model.head_dim = 10", gpt, [](ModelConfig& m) { m.head_dim = 10; });
  refuses("model.norm = layernorm", llama_model,
          [](ModelConfig& m) { m.norm = NormKind::LayerNorm; });
  refuses("model.activation = relu", llama_model,
          [](ModelConfig& m) { m.activation = Activation::Relu; });
  refuses("model.rope_fraction = 0.5", llama_model, [](ModelConfig& m) { m.rope_fraction = 0.5; });
  refuses("model.bias = all", llama_model, [](ModelConfig& m) {
    m.bias = BiasKind::All;
    m.window = 3;
  });
  refuses("model.bias = qkv", llama_model, [](ModelConfig& m) {
    m.bias = BiasKind::Qkv;
    m.qk_norm = true;
  });
  const Config t5_model = test::tiny_huggingface_t5();
  refuses("model.scale_head_input = false", t5_model, [](ModelConfig&) {});
  refuses("model.scale_attention = true", t5_model,
          [](ModelConfig& m) { m.scale_attention = true; });
  refuses("model.mask_cross_padding = false", t5_model,
          [](ModelConfig& m) { m.mask_cross_padding = false; });
  refuses("model.kv_heads = 1", t5_model, [](ModelConfig& m) { m.kv_heads = 1; });
  // Megatron-LM's.
  for (const char* field : {"model.position = learned", "model.norm = layernorm",
                            "model.bias = all", "model.head_bias = true"})
    refuses(field, test::tiny_t5(), [](ModelConfig&) {});
  // All misfits at once.
  Config c = gpt;
  c.model.norm = NormKind::RmsNorm;
  c.model.window = 3;
  const std::string message =
      expect_error(ErrorKind::Usage, "model.norm", [&] { huggingface_family(c); });
  EXPECT_NE(message.find("model.window"), std::string::npos);
}

}  // namespace
}  // namespace bev
