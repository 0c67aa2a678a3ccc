// What is trained: the shape of the model.
#pragma once

#include <string>

#include "config/choices.h"
#include "config/megatron/megatron_flags.h"
#include "config/parse/describe.h"

namespace bev {

struct ModelConfig {
  std::string preset;
  ModelFamily family = ModelFamily::Gpt;
  int64_t layers = 0, decoder_layers = 0, width = 0, heads = 0;
  int64_t kv_heads = 0, head_dim = 0, ffn = 0;
  int64_t vocab = 0, vocab_multiple = 128, positions = 0;
  NormKind norm = NormKind::LayerNorm;
  NormPlacement norm_placement = NormPlacement::Pre;
  double norm_eps = 1e-5;
  Activation activation = Activation::GeluTanh, head_activation = Activation::GeluErf;
  PositionKind position = PositionKind::Learned;
  int64_t relative_buckets = 32, relative_distance = 128;
  double rope_base = 10000, rope_fraction = 1;
  RopeScaling rope_scaling = RopeScaling::None;
  double rope_factor = 8, rope_low = 1, rope_high = 4;
  int64_t rope_original_positions = 8192;
  BiasKind bias = BiasKind::All;
  bool tied = true, qk_norm = false;
  bool scale_attention = true, scale_head_input = false, head_bias = true;
  bool mask_cross_padding = true;
  bool binary_head = true;
  bool shared_towers = false, scale_scores = false;
  int64_t projection = 0;
  int64_t window = 0;
  double hidden_dropout = 0.1, attention_dropout = 0.1;
  double init_std = 0.02;
  bool deep_init = false;

  template <class S, class V>
  static void describe(S& s, V& v) {
    constexpr auto M = Effect::Model;
    // Also what a run goes on with to learn longer texts: no weight has another meaning by it.
    constexpr auto N = Effect::Numerics;
    // clang-format off: a line per field reads as a table
    v("preset", s.preset, {.help = "named shape to start from; `bevatron plan --list-presets` lists them"});
    v("family", s.family, {.help = "gpt: causal decoder (GPT, Llama); bert: bidirectional encoder, trained on masked tokens; t5: encoder and decoder; biencoder: encoders of queries and contexts", .effect = M});
    v("layers", s.layers, {.help = "transformer blocks; t5: of the encoder", .effect = M, .min = 1, .max = 100000, .aliases = {{"--num-layers"}, {"--encoder-num-layers"}}});
    v("decoder_layers", s.decoder_layers, {.help = "t5: transformer blocks of the decoder; 0: as many as layers", .effect = M, .min = 0, .max = 100000, .aliases = {{"--decoder-num-layers"}}});
    v("width", s.width, {.help = "size of the hidden state", .effect = M, .min = 1, .max = 1 << 20, .aliases = {{"--hidden-size"}}});
    v("heads", s.heads, {.help = "query heads", .effect = M, .min = 1, .max = 1 << 16, .aliases = {{"--num-attention-heads"}}});
    v("kv_heads", s.kv_heads, {.help = "key/value heads; 0: as many as query heads", .effect = M, .min = 0, .max = 1 << 16, .aliases = {{"--num-query-groups"}, {"--group-query-attention", "1", {}, "0"}}});
    v("head_dim", s.head_dim, {.help = "size of one head; 0: width / heads", .effect = M, .min = 0, .max = 512, .aliases = {{"--kv-channels"}}});
    v("ffn", s.ffn, {.help = "inner size of the MLP; 0: 4 x width, with a gated activation 8/3 x width in steps of 64", .effect = M, .min = 0, .max = 1 << 24, .aliases = {{"--ffn-hidden-size"}, {"--intermediate-size"}}});
    v("vocab", s.vocab, {.help = "tokens in the vocabulary, before padding", .effect = M, .min = 1, .max = 1 << 28, .aliases = {{"--vocab-size"}}});
    v("vocab_multiple", s.vocab_multiple, {.help = "the vocabulary is padded to a multiple of this times the tensor ranks", .effect = Effect::Layout, .min = 1, .max = 1 << 20, .aliases = {{"--make-vocab-size-divisible-by"}, {"--no-pad-vocab-size", "1"}, {"--disable-pad-vocab-size", "1"}}});
    v("positions", s.positions, {.help = "longest sequence the model has positions for; 0: the training sequence length", .effect = M, .min = 0, .max = 1 << 28, .aliases = {{"--max-position-embeddings"}}});
    v("norm", s.norm, {.help = "normalisation", .effect = M, .aliases = {{"--normalization", "", {"LayerNorm", "RMSNorm"}}}});
    v("norm_placement", s.norm_placement, {.help = "bert, biencoder: pre: norms before attention and MLP, and a final norm; post: after the residual sums and the embedding", .effect = M});
    v("norm_eps", s.norm_eps, {.help = "added to the variance", .effect = M, .min = 0, .max = 1, .aliases = {{"--norm-epsilon"}, {"--layernorm-epsilon"}}});
    v("activation", s.activation, {.help = "non-linearity of the MLP", .effect = M, .aliases = {{"--swiglu", "swiglu"}, {"--squared-relu", "squared-relu"}, {"--no-bias-gelu-fusion", "gelu-erf", {}, "gelu-tanh"}, {"--openai-gelu", "gelu-tanh", {}, "gelu-erf"}}});
    v("head_activation", s.head_activation, {.help = "bert: non-linearity of the LM head's dense layer; --openai-gelu sets gelu-tanh", .effect = M});
    v("position", s.position, {.help = "how positions enter", .effect = M, .aliases = {{.flag = "--position-embedding-type", .values = {"learned_absolute", "rope", "none", "relative"}, .later = "yarn mrope"}, {"--use-rotary-position-embeddings", "rope"}, {"--no-position-embedding", "none", {}, "learned"}}});
    v("relative_buckets", s.relative_buckets, {.help = "relative positions: distances that have their own value in each head; far ones share", .effect = M, .min = 1, .max = 256, .aliases = {{"--relative-attention-num-buckets"}}});
    v("relative_distance", s.relative_distance, {.help = "relative positions: all distances from this one on share the last value", .effect = M, .min = 3, .max = 1 << 20, .aliases = {{"--relative-attention-max-distance"}}});
    v("rope_base", s.rope_base, {.help = "base of the rotary frequencies", .effect = N, .min = 1, .max = 1e15, .aliases = {{"--rotary-base"}}});
    v("rope_fraction", s.rope_fraction, {.help = "part of each head that is rotated", .effect = M, .min = 0, .max = 1, .aliases = {{"--rotary-percent"}}});
    v("rope_scaling", s.rope_scaling, {.help = "stretching of the rotary frequencies", .effect = N, .aliases = {{"--use-rope-scaling", "llama3"}}});
    v("rope_factor", s.rope_factor, {.help = "llama3: slow frequencies are divided by this", .effect = N, .min = 1, .max = 1e6, .aliases = {{"--rope-scaling-factor"}}});
    v("rope_low", s.rope_low, {.help = "llama3: wavelengths above original positions / this are slow", .effect = N, .min = 0.001, .max = 1e6});
    v("rope_high", s.rope_high, {.help = "llama3: wavelengths below original positions / this stay", .effect = N, .min = 0.001, .max = 1e6});
    v("rope_original_positions", s.rope_original_positions, {.help = "llama3: positions of the unscaled model", .effect = N, .min = 1, .max = 1 << 28});
    v("bias", s.bias, {.help = "which linear layers have a bias", .effect = M, .aliases = {{"--disable-bias-linear", "none"}, {"--add-qkv-bias", "qkv", {}, "none"}}});
    v("tied", s.tied, {.help = "the output layer is the token embedding", .effect = M, .aliases = {{"--untie-embeddings-and-output-weights", "false"}}});
    v("qk_norm", s.qk_norm, {.help = "normalise each query and key head", .effect = M, .aliases = {{"--qk-layernorm", "true"}}});
    v("scale_attention", s.scale_attention, {.help = "divide attention scores by sqrt(head_dim); false: as T5 of Hugging Face", .effect = M});
    v("scale_head_input", s.scale_head_input, {.help = "t5: divide the input of the LM head by sqrt(width), as T5 1.0 of Hugging Face", .effect = M});
    v("head_bias", s.head_bias, {.help = "t5: bias of the LM head; false: as T5 of Hugging Face", .effect = M});
    v("mask_cross_padding", s.mask_cross_padding, {.help = "t5: the decoder does not see padding of the encoder's text; false: it does, as in Megatron-LM's pretrain_t5.py since May 2023", .effect = N});
    v("binary_head", s.binary_head, {.help = "bert: predict the order of two segments from the first token", .effect = M, .aliases = {{"--bert-no-binary-head", "false"}}});
    v("shared_towers", s.shared_towers, {.help = "biencoder: one encoder reads queries and contexts; false: each have their own", .effect = M, .aliases = {{"--biencoder-shared-query-context-model", "true"}}});
    v("projection", s.projection, {.help = "biencoder: size of the embeddings that a linear layer makes of the first tokens; 0: the first tokens themselves", .effect = M, .min = 0, .max = 1 << 20, .aliases = {{"--biencoder-projection-dim"}}});
    v("scale_scores", s.scale_scores, {.help = "biencoder: divide the scores of query and context by sqrt(width)", .effect = N, .aliases = {{"--retriever-score-scaling", "true"}}});
    v("window", s.window, {.help = "a token sees at most this many tokens, itself included; 0: all before it", .effect = N, .min = 0, .max = 1 << 28, .aliases = {{.flag = "--window-size", .reads = parse_megatron_window}}});
    v("hidden_dropout", s.hidden_dropout, {.help = "dropout after embedding, attention and MLP", .effect = N, .min = 0, .max = 0.999, .aliases = {{"--hidden-dropout"}}});
    v("attention_dropout", s.attention_dropout, {.help = "dropout of attention probabilities", .effect = N, .min = 0, .max = 0.999, .aliases = {{"--attention-dropout"}}});
    v("init_std", s.init_std, {.help = "standard deviation of initial weights; output projections: divided by sqrt(2 x layers)", .min = 0, .max = 10, .aliases = {{"--init-method-std"}}});
    v("deep_init", s.deep_init, {.help = "bert and biencoder with norm_placement post: divide initial output projections by sqrt(2 x layers) as well; other models always do", .aliases = {{"--deep-init", "true"}}});
    // clang-format on
  }
};

}  // namespace bev
