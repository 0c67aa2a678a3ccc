#include "support/tiny_models.h"

#include "pipeline/rank_model.h"

namespace bev::test {

Config tiny_gpt() {
  Config c;
  c.model.layers = 2;
  c.model.width = 16;
  c.model.heads = 2;
  c.model.vocab = 29;
  c.model.vocab_multiple = 1;
  c.model.positions = 9;
  c.model.hidden_dropout = 0;
  c.model.attention_dropout = 0;
  c.model.init_std = 0.2;  // large, so that no gradient is lost in rounding
  c.train.sequence = 7;
  c.train.micro_batch = 2;
  c.train.global_batch = 4;
  c.train.iterations = 3;
  c.train.output = "";
  c.data.mock = true;
  c.optim.lr = 0.01;
  c.optim.decay = LrDecay::Constant;
  c.optim.weight_decay = 0.1;
  c.optim.clip = 0.5;
  c.loss.chunk = 5;  // does not divide the tokens
  c.device.kind = DeviceKind::Reference;
  return c;
}

Config tiny_llama() {
  Config c = tiny_gpt();
  c.model.heads = 4;
  c.model.kv_heads = 2;
  c.model.ffn = 20;
  c.model.norm = NormKind::RmsNorm;
  c.model.activation = Activation::SwiGlu;
  c.model.position = PositionKind::Rope;
  c.model.bias = BiasKind::None;
  c.model.tied = false;
  return c;
}

Config tiny_bert() {
  Config c = tiny_gpt();
  c.model.family = ModelFamily::Bert;
  c.data.mask_prob = 0.4;
  c.loss.chunk = 4;
  return c;
}

Config tiny_t5() {
  Config c = tiny_gpt();
  c.model.family = ModelFamily::T5;
  c.train.decoder_sequence = 5;
  return c;
}

Config tiny_huggingface_t5() {
  Config c = tiny_t5();
  c.model.head_dim = 6;
  c.model.norm = NormKind::RmsNorm;
  c.model.activation = Activation::Relu;
  c.model.position = PositionKind::Relative;
  c.model.relative_buckets = 6;
  c.model.relative_distance = 6;
  c.model.bias = BiasKind::None;
  c.model.scale_attention = c.model.head_bias = false;
  return c;
}

Config tiny_biencoder() {
  Config c = tiny_gpt();
  c.model.family = ModelFamily::Biencoder;
  c.model.shared_towers = true;
  c.log.top_k = {"1", "2"};
  return c;
}

std::vector<TinyModel> tiny_models() {
  std::vector<TinyModel> models;
  const auto add = [&](const std::string& name, Config config, auto change) {
    change(config);
    models.push_back({name, config});
  };
  add("gpt", tiny_gpt(), [](Config&) {});
  add("gpt_dropout", tiny_gpt(), [](Config& c) {
    c.model.hidden_dropout = 0.2;
    c.model.attention_dropout = 0.3;
  });
  add("gpt_rotary_untied_erf", tiny_gpt(), [](Config& c) {
    c.model.position = PositionKind::Rope;
    c.model.rope_fraction = 0.5;
    c.model.tied = false;
    c.model.activation = Activation::GeluErf;
  });
  add("gpt_no_bias_squared_relu_smooth", tiny_gpt(), [](Config& c) {
    c.model.bias = BiasKind::None;
    c.model.activation = Activation::SquaredRelu;
    c.loss.label_smoothing = 0.1;
    c.loss.smoothing = Smoothing::Megatron;
    c.loss.z_loss = 0.01;
  });
  add("llama", tiny_llama(), [](Config&) {});
  add("llama_dropout_tied", tiny_llama(), [](Config& c) {
    c.model.hidden_dropout = 0.1;
    c.model.attention_dropout = 0.1;
    c.model.tied = true;
  });
  add("qwen2_qkv_bias", tiny_llama(), [](Config& c) { c.model.bias = BiasKind::Qkv; });
  add("qwen3_qk_norm_wide_heads", tiny_llama(), [](Config& c) {
    c.model.qk_norm = true;
    c.model.head_dim = 6;
  });
  add("mistral_window", tiny_llama(), [](Config& c) { c.model.window = 3; });
  add("llama3_scaled_geglu", tiny_llama(), [](Config& c) {
    c.model.rope_scaling = RopeScaling::Llama3;
    c.model.rope_original_positions = 16;
    c.model.activation = Activation::GeGluTanh;
  });
  add("bert", tiny_bert(), [](Config&) {});
  add("bert_post_norm_dropout", tiny_bert(), [](Config& c) {
    c.model.norm_placement = NormPlacement::Post;
    c.model.hidden_dropout = 0.2;
    c.model.attention_dropout = 0.1;
    c.model.activation = Activation::GeluErf;
  });
  add("t5", tiny_t5(), [](Config&) {});
  add("t5_deep_decoder_dropout", tiny_t5(), [](Config& c) {
    c.model.layers = 1;
    c.model.decoder_layers = 3;
    c.model.hidden_dropout = 0.2;
    c.model.attention_dropout = 0.1;
    c.model.mask_cross_padding = false;
  });
  add("t5_1_0_of_huggingface", tiny_huggingface_t5(),
      [](Config& c) { c.model.scale_head_input = true; });
  add("t5_1_1_of_huggingface", tiny_huggingface_t5(), [](Config& c) {
    c.model.tied = false;
    c.model.activation = Activation::GeGluTanh;
    c.model.ffn = 20;
  });
  add("biencoder", tiny_biencoder(), [](Config&) {});
  add("biencoder_projection_scaled_dropout", tiny_biencoder(), [](Config& c) {
    c.model.projection = 5;
    c.model.scale_scores = true;
    c.model.hidden_dropout = 0.2;
    c.model.attention_dropout = 0.1;
  });
  add("biencoder_separate", tiny_biencoder(), [](Config& c) { c.model.shared_towers = false; });
  add("biencoder_separate_post_norm_projection", tiny_biencoder(), [](Config& c) {
    c.model.shared_towers = false;
    c.model.norm_placement = NormPlacement::Post;
    c.model.projection = 11;
  });
  return models;
}

std::vector<TinyModel> with_independent_samples(std::vector<TinyModel> models) {
  std::erase_if(models, [](const TinyModel& model) {
    return model.config.model.family == ModelFamily::Biencoder;
  });
  return models;
}

int64_t parameter_count(const Config& config) {
  int64_t count = 0;
  for (const ParamSpec& spec : model_parameters(config)) count += spec.shape.elements();
  return count;
}

}  // namespace bev::test
