// How it is trained: batch, length, optimizer, memory, device.
#pragma once

#include <string>

#include "config/choices.h"
#include "config/megatron/megatron_flags.h"
#include "config/parse/describe.h"

namespace bev {

// clang-format off: a line per field reads as a table

struct TrainConfig {
  int64_t iterations = 0, samples = 0;
  int64_t micro_batch = 0, global_batch = 0, sequence = 0, decoder_sequence = 0;
  int64_t ramp_start = 0, ramp_increment = 0, ramp_samples = 0;
  int64_t seed = 1234, log_interval = 100;
  int64_t exit_interval = 0, exit_after = 0, exit_samples = 0;
  double exit_minutes = 0;
  bool skip_train = false;
  Compat compat = Compat::Main;
  std::string output = "bevatron-run";

  template <class S, class V>
  static void describe(S& s, V& v) {
    constexpr auto N = Effect::Numerics;
    v("iterations", s.iterations, {.help = "optimizer steps; give this or samples", .min = 0, .max = 1e15, .aliases = {{"--train-iters"}}});
    v("samples", s.samples, {.help = "training length in sequences; give this or iterations", .min = 0, .max = 1e15, .aliases = {{"--train-samples"}}});
    v("micro_batch", s.micro_batch, {.help = "sequences computed at a time", .effect = Effect::Runtime, .min = 1, .max = 1 << 24, .aliases = {{"--micro-batch-size"}, {"--batch-size"}}});
    v("global_batch", s.global_batch, {.help = "sequences of one optimizer step; 0: one micro-batch", .effect = N, .min = 0, .max = 1 << 28, .aliases = {{"--global-batch-size"}}});
    v("ramp_start", s.ramp_start, {.help = "global batch of the first step; 0: no ramp", .effect = N, .min = 0, .max = 1 << 28, .aliases = {{.flag = "--rampup-batch-size", .part = 1}}});
    v("ramp_increment", s.ramp_increment, {.help = "by how much the global batch grows at a time", .effect = N, .min = 0, .max = 1 << 28, .aliases = {{.flag = "--rampup-batch-size", .part = 2}}});
    v("ramp_samples", s.ramp_samples, {.help = "samples after which the batch has its full size", .effect = N, .min = 0, .max = 1e15, .aliases = {{.flag = "--rampup-batch-size", .part = 3}}});
    v("sequence", s.sequence, {.help = "tokens of one sequence", .effect = N, .min = 1, .max = 1 << 28, .aliases = {{"--seq-length"}, {"--encoder-seq-length"}}});
    v("decoder_sequence", s.decoder_sequence, {.help = "t5: tokens of the decoder's text; 0: as many as sequence, which is then the encoder's", .effect = N, .min = 0, .max = 1 << 28, .aliases = {{"--decoder-seq-length"}}});
    v("seed", s.seed, {.help = "of initial weights, dropout and data order", .effect = N, .min = 0, .max = 9e18, .aliases = {{"--seed"}}});
    v("log_interval", s.log_interval, {.help = "iterations between log lines", .min = 1, .max = 1e9, .aliases = {{"--log-interval"}}});
    v("exit_interval", s.exit_interval, {.help = "end the run after an iteration that is a multiple of this; 0: train to the end", .min = 0, .max = 1e15, .aliases = {{"--exit-interval"}}});
    v("exit_minutes", s.exit_minutes, {.help = "end the run after the first iteration that is later than this; 0: no limit", .min = 0, .max = 1e9, .aliases = {{"--exit-duration-in-mins"}}});
    v("exit_after", s.exit_after, {.help = "end the run after so many iterations of its own, however many were done before; 0: train to the end", .min = 0, .max = 1e15});
    v("exit_samples", s.exit_samples, {.help = "end the run after the iteration with which so many samples of the training are consumed; 0: train to the end", .min = 0, .max = 1e15, .aliases = {{"--exit-samples"}}});
    v("skip_train", s.skip_train, {.help = "train nothing: only the validation and the test that would end the training", .aliases = {{"--skip-train", "true"}}});
    v("compat", s.compat, {.help = "whose rules count where versions of Megatron-LM differ", .effect = N, .aliases = {{"--compat"}}});
    v("output", s.output, {.help = "folder of the run: config.toml, metrics.jsonl and at the end model/ in Hugging Face format; empty: none"});
  }
};

struct DataConfig {
  TextList path, train_path, valid_path, test_path;
  std::string split = "969,30,1";
  std::string args_path, split_args_path;
  SampleOrder order = SampleOrder::Arithmetic;
  SamplerKind sampler = SamplerKind::Single;
  bool mmap = true;
  bool mock = false;
  TokenizerKind tokenizer = TokenizerKind::None;
  std::string vocab_file, merge_file, tokenizer_model;
  int64_t vocab_extra_ids = 0;
  bool tokenizer_template = true;
  int64_t eod = -1;
  bool mask_eod = false, reset_positions = false, reset_attention = false;
  bool separate_sequences = false;
  double mask_prob = 0.15, short_seq_prob = 0.1;
  int64_t max_predictions = 0;
  std::string titles_path;
  double query_in_block = 0.1;
  bool single_sentences = false;
  std::string skip;

  // Whether tokens see only a part of what stands before them.
  bool is_packed() const { return reset_attention || separate_sequences; }

  template <class S, class V>
  static void describe(S& s, V& v) {
    constexpr auto N = Effect::Numerics;
    v("path", s.path, {.help = "token file (.bin and .idx) without its ending, divided by split; several, each after its weight or all without: a blend", .effect = N, .aliases = {{"--data-path"}}});
    v("train_path", s.train_path, {.help = "token file or blend for training alone, instead of path", .effect = N, .aliases = {{"--train-data-path"}}});
    v("valid_path", s.valid_path, {.help = "token file or blend for validation alone", .effect = N, .aliases = {{"--valid-data-path"}}});
    v("test_path", s.test_path, {.help = "token file or blend for the test after training", .effect = N, .aliases = {{"--test-data-path"}}});
    v("split", s.split, {.help = "weights of training, validation and test in path, by sequences", .effect = N, .aliases = {{"--split"}}});
    v("args_path", s.args_path, {.help = "text file with what path would hold: weights and token files with blanks between", .effect = N, .aliases = {{"--data-args-path"}}});
    v("split_args_path", s.split_args_path, {.help = "JSON file with the lists train, valid and test, each as path would hold it", .effect = N, .aliases = {{"--per-split-data-args-path"}}});
    v("order", s.order, {.help = "order of the samples: computed from their number, or exactly Megatron-LM's, with its index in memory", .effect = N});
    v("sampler", s.sampler, {.help = "single: the samples in this order; cyclic: shuffled again in each epoch, as Megatron-LM does it", .effect = N, .aliases = {{.flag = "--dataloader-type", .later = "external"}}});
    v("mmap", s.mmap, {.help = "map token files into memory; false: read them piece by piece, with retries, as network file systems need it", .aliases = {{"--no-mmap-bin-files", "false"}}});
    v("mock", s.mock, {.help = "train on made-up tokens instead of files", .effect = N, .aliases = {{"--mock-data", "true"}}});
    v("tokenizer", s.tokenizer, {.help = "what made the token ids: decides vocabulary and end-of-document id", .effect = N, .aliases = {{.flag = "--tokenizer-type", .values = {kMegatronTokenizerNames.begin(), kMegatronTokenizerNames.end()}, .later = "CharacterLevelTokenizer MultimodalTokenizer NullMultimodalTokenizer SFTTokenizer", .reads = parse_megatron_tokenizer}}});
    v("vocab_file", s.vocab_file, {.help = "gpt2: vocab.json; bert-lower, bert-cased: vocab.txt", .aliases = {{"--vocab-file"}}});
    v("merge_file", s.merge_file, {.help = "gpt2: merges.txt", .aliases = {{"--merge-file"}}});
    v("tokenizer_model", s.tokenizer_model, {.help = "huggingface: tokenizer.json or its folder; sentencepiece, gpt-sentencepiece, llama2: the .model file", .aliases = {{"--tokenizer-model"}}});
    v("vocab_extra_ids", s.vocab_extra_ids, {.help = "bert and sentencepiece: tokens <extra_id_0>, <extra_id_1>, ... behind the vocabulary; t5: they stand for removed spans", .effect = N, .min = 0, .max = 1 << 20, .aliases = {{"--vocab-extra-ids"}}});
    v("tokenizer_template", s.tokenizer_template, {.help = "put the tokens of the tokenizer's template ([CLS] ... [SEP]) around a text", .effect = N, .aliases = {{"--tokenizer-hf-no-include-special-tokens", "false"}}});
    v("eod", s.eod, {.help = "id that ends a document; -1: the tokenizer's", .effect = N, .min = -1, .max = 1 << 28, .aliases = {{"--null-tokenizer-eod-id"}}});
    v("mask_eod", s.mask_eod, {.help = "what follows an end of document is not part of the loss", .effect = N, .aliases = {{"--eod-mask-loss", "true"}}});
    v("reset_positions", s.reset_positions, {.help = "positions restart after an end of document", .effect = N, .aliases = {{"--reset-position-ids", "true"}}});
    v("reset_attention", s.reset_attention, {.help = "tokens see nothing before the last end of document", .effect = N, .aliases = {{"--reset-attention-mask", "true"}}});
    v("separate_sequences", s.separate_sequences, {.help = "tokens see nothing of another sequence of the file, and positions restart with each", .effect = N, .aliases = {{"--dataloader-inter-document-masking", "true"}}});
    v("mask_prob", s.mask_prob, {.help = "bert, t5: part of the tokens of a sequence that is masked, at most", .effect = N, .min = 0.001, .max = 1, .aliases = {{"--mask-prob"}}});
    v("short_seq_prob", s.short_seq_prob, {.help = "bert, t5: part of the samples that are made shorter than the sequence", .effect = N, .min = 0, .max = 1, .aliases = {{"--short-seq-prob"}}});
    v("max_predictions", s.max_predictions, {.help = "bert, t5: masked tokens of a sequence, at most; 0: mask_prob of its length", .effect = N, .min = 0, .max = 1 << 20, .aliases = {{"--max-preds-per-seq"}}});
    v("titles_path", s.titles_path, {.help = "biencoder: token file with a title for each document of path; empty: blocks have no titles", .effect = N, .aliases = {{"--titles-data-path"}}});
    v("query_in_block", s.query_in_block, {.help = "biencoder: part of the samples whose query stays in its block", .effect = N, .min = 0, .max = 1, .aliases = {{"--query-in-block-prob"}}});
    v("single_sentences", s.single_sentences, {.help = "biencoder: documents and blocks of a single sentence have samples too", .effect = N, .aliases = {{"--use-one-sent-docs", "true"}}});
    v("skip", s.skip, {.help = "samples that the training leaves out, counted from 0 in its order, such as 4096-4607,9000-9099", .effect = N});
  }
};

struct EvalConfig {
  int64_t interval = 1000, iterations = 100;

  template <class S, class V>
  static void describe(S& s, V& v) {
    v("interval", s.interval, {.help = "iterations between validations; 0: none", .min = 0, .max = 1e15, .aliases = {{"--eval-interval"}}});
    v("iterations", s.iterations, {.help = "global batches of one validation, as far as there is text; 0: none", .min = 0, .max = 1e15, .aliases = {{"--eval-iters"}}});
  }
};

struct OptimConfig {
  OptimizerKind kind = OptimizerKind::AdamW;
  double lr = 0, min_lr = 0;
  LrDecay decay = LrDecay::Linear;
  int64_t decay_iterations = 0, decay_samples = 0;
  int64_t warmup_iterations = 0, warmup_samples = 0;
  double warmup_fraction = 0, warmup_init = 0;
  WsdDecay wsd_decay = WsdDecay::Exponential;
  int64_t wsd_iterations = 0, wsd_samples = 0;
  double weight_decay = 0.01, start_weight_decay = -1, end_weight_decay = -1;
  DecayRamp weight_decay_ramp = DecayRamp::Constant;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, momentum = 0.9, clip = 1.0;
  StatePrecision gradients = StatePrecision::F32;
  StatePrecision first_moment = StatePrecision::F32, second_moment = StatePrecision::F32;
  NormScope lamb_norms = NormScope::Whole;
  double lamb_clip = 1.0;
  bool lamb_decoupled = true, lamb_grad_averaging = true, lamb_bias_correction = true;
  bool nvlamb = false;
  double alpha = 1.0;
  int64_t lambtp_solution = 1;

  // True if the norms that scale an update depend on the number of tensor ranks.
  bool has_shard_norms() const {
    return kind == OptimizerKind::LambTp ? lambtp_solution != 1
                                         : is_lamb(kind) && lamb_norms == NormScope::TensorShard;
  }

  template <class S, class V>
  static void describe(S& s, V& v) {
    constexpr auto N = Effect::Numerics;
    v("kind", s.kind, {.help = "optimizer; adam decouples weight decay; the rules of LAMB and its variants are in docs/optimizers.md", .effect = N, .aliases = {{.flag = "--optimizer", .later = "muon dist_muon adaptive_muon lion soap"}}});
    v("lr", s.lr, {.help = "peak learning rate", .effect = N, .min = 0, .max = 1e6, .aliases = {{"--lr"}}});
    v("min_lr", s.min_lr, {.help = "learning rate after the decay", .effect = N, .min = 0, .max = 1e6, .aliases = {{"--min-lr"}}});
    v("decay", s.decay, {.help = "how the learning rate falls after the warm-up", .effect = N, .aliases = {{.flag = "--lr-decay-style", .later = "exponential"}}});
    v("decay_iterations", s.decay_iterations, {.help = "iterations until min_lr; 0: the training length", .effect = N, .min = 0, .max = 1e15, .aliases = {{"--lr-decay-iters"}}});
    v("decay_samples", s.decay_samples, {.help = "the same in samples", .effect = N, .min = 0, .max = 1e15, .aliases = {{"--lr-decay-samples"}}});
    v("warmup_iterations", s.warmup_iterations, {.help = "iterations of linear rise from warmup_init", .effect = N, .min = 0, .max = 1e15, .aliases = {{"--lr-warmup-iters"}}});
    v("warmup_samples", s.warmup_samples, {.help = "the same in samples", .effect = N, .min = 0, .max = 1e15, .aliases = {{"--lr-warmup-samples"}}});
    v("warmup_fraction", s.warmup_fraction, {.help = "the same as a part of the decay length", .effect = N, .min = 0, .max = 1, .aliases = {{"--lr-warmup-fraction"}, {"--warmup"}}});
    v("warmup_init", s.warmup_init, {.help = "learning rate at the first step of the warm-up", .effect = N, .min = 0, .max = 1e6, .aliases = {{"--lr-warmup-init"}}});
    v("wsd_decay", s.wsd_decay, {.help = "WSD: shape of the final decay", .effect = N, .aliases = {{"--lr-wsd-decay-style"}}});
    v("wsd_iterations", s.wsd_iterations, {.help = "WSD: iterations of the final decay", .effect = N, .min = 0, .max = 1e15, .aliases = {{"--lr-wsd-decay-iters"}}});
    v("wsd_samples", s.wsd_samples, {.help = "WSD: the same in samples", .effect = N, .min = 0, .max = 1e15, .aliases = {{"--lr-wsd-decay-samples"}}});
    v("weight_decay", s.weight_decay, {.help = "decay of matrices and embeddings", .effect = N, .min = 0, .max = 10, .aliases = {{"--weight-decay"}}});
    v("start_weight_decay", s.start_weight_decay, {.help = "ramp: weight decay at the start; -1: no ramp", .effect = N, .min = -1, .max = 10, .aliases = {{"--start-weight-decay"}}});
    v("end_weight_decay", s.end_weight_decay, {.help = "ramp: weight decay at the end; -1: no ramp", .effect = N, .min = -1, .max = 10, .aliases = {{"--end-weight-decay"}}});
    v("weight_decay_ramp", s.weight_decay_ramp, {.help = "how weight decay goes from start to end over the training", .effect = N, .aliases = {{"--weight-decay-incr-style"}}});
    v("beta1", s.beta1, {.help = "adam, lamb: decay of the first moment", .effect = N, .min = 0, .max = 0.999999, .aliases = {{"--adam-beta1"}}});
    v("beta2", s.beta2, {.help = "adam, lamb: decay of the second moment", .effect = N, .min = 0, .max = 0.999999999, .aliases = {{"--adam-beta2"}}});
    v("eps", s.eps, {.help = "adam, lamb: added to the root of the second moment", .effect = N, .min = 0, .max = 1, .aliases = {{"--adam-eps"}}});
    v("momentum", s.momentum, {.help = "sgd: momentum", .effect = N, .min = 0, .max = 1, .aliases = {{"--sgd-momentum"}}});
    v("clip", s.clip, {.help = "bound on the global gradient norm; 0: none", .effect = N, .min = 0, .max = 1e30, .aliases = {{"--clip-grad"}}});
    v("gradients", s.gradients, {.help = "cuda: what gradients are summed in", .effect = N, .aliases = {{.flag = "--main-grads-dtype", .values = {"fp32", "bf16"}}, {"--grad-reduce-in-bf16", "bf16"}}});
    v("first_moment", s.first_moment, {.help = "cuda: storage of adam's first moment; bf16 is rounded stochastically", .effect = N, .aliases = {{.flag = "--exp-avg-dtype", .values = {"fp32", "bf16"}, .later = "fp16 fp8"}}});
    v("second_moment", s.second_moment, {.help = "cuda: the same for the second moment", .effect = N, .aliases = {{.flag = "--exp-avg-sq-dtype", .values = {"fp32", "bf16"}, .later = "fp16 fp8"}}});
    v("lamb_norms", s.lamb_norms, {.help = "lamb: norms of whole logical tensors, which do not depend on the layout, or of each tensor-parallel shard", .effect = N});
    v("lamb_clip", s.lamb_clip, {.help = "lamb: second bound on the global gradient norm, after optim.clip; 0: none", .effect = N, .min = 0, .max = 1e30});
    v("lamb_decoupled", s.lamb_decoupled, {.help = "lamb: weight decay enters the update; false: the gradient (apex: adam_w_mode)", .effect = N});
    v("lamb_grad_averaging", s.lamb_grad_averaging, {.help = "lamb: the gradient enters the first moment with the factor 1 - beta1; false: 1", .effect = N});
    v("lamb_bias_correction", s.lamb_bias_correction, {.help = "lamb: correct the moments for their start at 0", .effect = N});
    v("nvlamb", s.nvlamb, {.help = "lamb: trust ratios for parameters without weight decay too", .effect = N});
    v("alpha", s.alpha, {.help = "mylamb3: the largest tensor learns 1 + alpha times as fast, others by their size", .effect = N, .min = 0, .max = 1e6, .aliases = {{"--alpha"}}});
    v("lambtp_solution", s.lambtp_solution, {.help = "lambtp: 0: norms of each shard; 1: of whole tensors; 2: weights of whole tensors, update of the shard; 3: update norm of the previous step", .effect = N, .min = 0, .max = 3});
  }
};

struct LossConfig {
  LossAverage average = LossAverage::Token;
  double label_smoothing = 0;
  Smoothing smoothing = Smoothing::Torch;
  double z_loss = 0;
  int64_t chunk = 0;
  double scale = 0, initial_scale = 4294967296.0, min_scale = 1;
  double scale_window = 1000;
  int64_t hysteresis = 2;

  template <class S, class V>
  static void describe(S& s, V& v) {
    v("average", s.average, {.help = "token: mean over all counted tokens of the global batch; micro-batch: mean of the means of its micro-batches, Megatron-LM's rule and the default of pretrain_bert.py and pretrain_t5.py. The two differ if micro-batches have different numbers of counted tokens", .effect = Effect::Numerics, .aliases = {{"--calculate-per-token-loss", "token"}}});
    v("label_smoothing", s.label_smoothing, {.help = "probability spread over all tokens", .effect = Effect::Numerics, .min = 0, .max = 0.999, .aliases = {{"--label-smoothing"}}});
    v("smoothing", s.smoothing, {.help = "whose definition of label smoothing", .effect = Effect::Numerics});
    v("z_loss", s.z_loss, {.help = "weight of the squared log-normaliser", .effect = Effect::Numerics, .min = 0, .max = 10});
    v("scale", s.scale, {.help = "constant factor of the loss in the backward pass; 0: with fp16 one that adapts, else 1", .effect = Effect::Numerics, .min = 0, .max = 1.8446744073709552e19, .aliases = {{"--loss-scale"}}});
    v("initial_scale", s.initial_scale, {.help = "fp16: the adapting factor at the start", .min = 1e-30, .max = 1.8446744073709552e19, .aliases = {{"--initial-loss-scale"}}});
    v("min_scale", s.min_scale, {.help = "fp16: the factor does not fall below this", .effect = Effect::Numerics, .min = 1e-30, .max = 1.8446744073709552e19, .aliases = {{"--min-loss-scale"}, {"--min-scale"}}});
    v("scale_window", s.scale_window, {.help = "fp16: steps without overflow until the factor doubles", .effect = Effect::Numerics, .min = 0, .max = 1e12, .aliases = {{"--loss-scale-window"}}});
    v("hysteresis", s.hysteresis, {.help = "fp16: overflows until the factor is halved", .effect = Effect::Numerics, .min = 1, .max = 1e9, .aliases = {{"--hysteresis"}}});
    v("chunk", s.chunk, {.help = "tokens whose logits exist at a time; 0: chosen by the device", .min = 0, .max = 1 << 28});
  }
};

struct RecomputeConfig {
  Recompute granularity = Recompute::None;
  RecomputeMethod method = RecomputeMethod::Block;
  int64_t layers = 0;
  bool distribute = false;
  bool norm = true, activation = true, attention = true;

  template <class S, class V>
  static void describe(S& s, V& v) {
    v("granularity", s.granularity, {.help = "what is computed again in the backward pass instead of kept", .aliases = {{"--recompute-granularity"}, {"--recompute-activations", "selective"}, {"--checkpoint-activations", "full"}}});
    v("method", s.method, {.help = "full: of each stage, uniform: all blocks in groups, of which only the input is kept; block: the first blocks, one at a time", .aliases = {{"--recompute-method"}}});
    v("layers", s.layers, {.help = "uniform: blocks in a group; block: how many blocks of each stage; 0: all blocks, one at a time", .min = 0, .max = 100000, .aliases = {{"--recompute-num-layers"}, {"--checkpoint-num-layers"}}});
    v("distribute", s.distribute, {.help = "full: each tensor rank keeps a part of the inputs, and they are gathered for the recomputation", .aliases = {{"--distribute-saved-activations", "true"}, {"--distribute-checkpointed-activations", "true"}}});
    v("norm", s.norm, {.help = "selective: outputs of norms"});
    v("activation", s.activation, {.help = "selective: outputs of the MLP's non-linearity"});
    v("attention", s.attention, {.help = "selective: outputs of the attention core"});
  }
};

struct DeviceConfig {
  DeviceKind kind = DeviceKind::Auto;
  int64_t threads = 0;
  Precision precision = Precision::Auto;
  double memory_gib = 0;
  bool deterministic = false, tf32 = false, autotune = true, graphs = true;
  std::string cache{};

  template <class S, class V>
  static void describe(S& s, V& v) {
    v("kind", s.kind, {.help = "where the model runs; auto: cuda where a GPU can be used, else cpu", .aliases = {{"--device"}}});
    v("threads", s.threads, {.help = "cpu threads; 0: all this process may use", .min = 0, .max = 4096});
    v("precision", s.precision, {.help = "storage of parameters and activations; auto: bf16 on cuda, f32 on cpu, f64 on reference", .effect = Effect::Numerics, .aliases = {{"--bf16", "bf16"}, {"--fp16", "fp16"}}});
    v("memory_gib", s.memory_gib, {.help = "memory the run may use; 0: what the machine or GPU has free", .min = 0, .max = 1e9});
    v("deterministic", s.deterministic, {.help = "cuda: two runs with the same device.cache give the same bits, at the cost of speed and memory", .aliases = {{"--deterministic", "true"}, {"--deterministic-mode", "true"}}});
    v("tf32", s.tf32, {.help = "cuda: f32 products round their operands to 10 bits, for speed", .effect = Effect::Numerics});
    v("autotune", s.autotune, {.help = "cuda: before the first step, time the algorithms that the library proposes for each GEMM (a few seconds, then cached); never with deterministic", .formerly = "tune"});
    v("graphs", s.graphs, {.help = "cuda: on one rank, capture the work of a micro-batch as CUDA graphs and launch those"});
    v("cache", s.cache, {.help = "cuda: folder that remembers which algorithms were fastest; empty: bevatron in XDG_CACHE_HOME or ~/.cache; off: nowhere"});
  }
};

struct LogConfig {
  bool dispatch = false;
  std::string trace;
  int64_t trace_iteration = 3;
  std::string ranks = "0";
  int64_t timing = 0;
  TimedRanks timed_ranks = TimedRanks::MinMax;
  std::string tensorboard;
  int64_t tensorboard_interval = 1, tensorboard_queue = 1000;
  TextList top_k;

  template <class S, class V>
  static void describe(S& s, V& v) {
    v("dispatch", s.dispatch, {.help = "say which implementation each op chose and why others were refused"});
    v("trace", s.trace, {.help = "file for a trace of one iteration (of the first of several ranks, and of the next iteration too, in which exchanges end), in the format of Chrome and Perfetto; empty: none", .aliases = {{"--trace"}}});
    v("trace_iteration", s.trace_iteration, {.help = "which iteration is traced", .min = 1, .max = 1e15});
    v("ranks", s.ranks, {.help = "which ranks print, such as 0,2-5 or all; each process also writes what it would print to a file of its own in the run folder"});
    v("timing", s.timing, {.help = "where the time of an iteration goes, below each log line. 0: nothing, 1: its parts, 2: also each kind of op, at some cost", .min = 0, .max = 2, .aliases = {{"--timing-log-level"}}});
    v("timed_ranks", s.timed_ranks, {.help = "of several ranks, whose times those are: of the slowest, of the fastest and the slowest, or of all", .aliases = {{"--timing-log-option"}}});
    v("tensorboard", s.tensorboard, {.help = "folder for event files that TensorBoard reads, with the tags of Megatron-LM; empty: none", .aliases = {{"--tensorboard-dir"}}});
    v("tensorboard_interval", s.tensorboard_interval, {.help = "iterations between points of these curves", .min = 1, .max = 1e9, .aliases = {{"--tensorboard-log-interval"}}});
    v("tensorboard_queue", s.tensorboard_queue, {.help = "points that may wait in memory before they are written; they never wait longer than some seconds", .min = 1, .max = 1e6, .aliases = {{"--tensorboard-queue-size"}}});
    v("top_k", s.top_k, {.help = "biencoder: accuracies to report: for each number k, the part of the queries whose context is among the k best of the micro-batch", .aliases = {{"--retriever-report-topk-accuracies"}}});
  }
};

struct ParallelConfig {
  int64_t ranks = 1;
  int64_t tensor = 1, pipeline = 1, context = 1;
  bool sequence = false;
  int64_t chunks = 1, chunk_layers = 0, first_layers = 0, last_layers = 0, decoder_stage = 0;
  ScheduleKind schedule = ScheduleKind::OneFOneB;
  int64_t zero = 0;
  bool overlap_gradients = false, overlap_parameters = false;
  CommBackend backend = CommBackend::Auto;
  std::string interface;
  double timeout_minutes = 10, heartbeat_warning_seconds = 30;

  template <class S, class V>
  static void describe(S& s, V& v) {
    v("ranks", s.ranks, {.help = "how many; what tensor, context and pipeline leave of them share the batch. Each is a thread of this process, or a process where a launcher started several, which then says how many", .effect = Effect::Layout, .min = 1, .max = 1 << 20, .aliases = {{"--threads"}}});
    v("tensor", s.tensor, {.help = "ranks that share each matrix", .effect = Effect::Layout, .min = 1, .max = 1 << 20, .aliases = {{"--tensor-model-parallel-size"}, {"--model-parallel-size"}}});
    v("pipeline", s.pipeline, {.help = "ranks that share the layers", .effect = Effect::Layout, .min = 1, .max = 1 << 20, .aliases = {{"--pipeline-model-parallel-size"}}});
    v("context", s.context, {.help = "ranks that share each sequence", .effect = Effect::Layout, .min = 1, .max = 1 << 20, .aliases = {{"--context-parallel-size"}}});
    v("sequence", s.sequence, {.help = "cut tokens between tensor regions", .effect = Effect::Layout, .aliases = {{"--sequence-parallel", "true"}}});
    v("chunks", s.chunks, {.help = "stages of each pipeline rank, which shorten the bubble", .effect = Effect::Layout, .min = 1, .max = 1 << 16, .aliases = {{"--num-virtual-stages-per-pipeline-rank"}}});
    v("chunk_layers", s.chunk_layers, {.help = "layers of each stage, from which chunks follows; 0: chunks is as given", .effect = Effect::Layout, .min = 0, .max = 100000, .aliases = {{"--num-layers-per-virtual-pipeline-stage"}}});
    v("first_layers", s.first_layers, {.help = "layers of the first stage; 0: divided like the others", .effect = Effect::Layout, .min = 0, .max = 100000, .aliases = {{"--decoder-first-pipeline-num-layers"}}});
    v("last_layers", s.last_layers, {.help = "layers of the last stage; 0: divided like the others", .effect = Effect::Layout, .min = 0, .max = 100000, .aliases = {{"--decoder-last-pipeline-num-layers"}}});
    v("decoder_stage", s.decoder_stage, {.help = "t5: first stage of the decoder, counted from 0; 0: chosen so that the slowest stage has the least work", .effect = Effect::Layout, .min = 0, .max = 1 << 20, .aliases = {{"--pipeline-model-parallel-split-rank"}}});
    v("schedule", s.schedule, {.help = "order in which a pipeline computes; 1f1b with several chunks is interleaved", .effect = Effect::Layout});
    v("zero", s.zero, {.help = "divided over the ranks that share the batch: 0: nothing, 1: the optimizer's state, 2: gradients too, 3: and parameters", .effect = Effect::Layout, .min = 0, .max = 3, .aliases = {{"--use-distributed-optimizer", "1"}, {"--use-megatron-fsdp", "3"}, {"--use-torch-fsdp2", "3"}, {.flag = "--data-parallel-sharding-strategy", .only_from = "3", .reads = parse_megatron_sharding}}});
    v("overlap_gradients", s.overlap_gradients, {.help = "sum gradients over the ranks that share the batch while backward goes on; zero 2 and 3: a second bucket of gradients", .effect = Effect::Layout, .aliases = {{"--overlap-grad-reduce", "true"}}});
    v("overlap_parameters", s.overlap_parameters, {.help = "zero 1 to 3: gather parameters while forward (zero 3: also backward) goes on; zero 3: a second bucket of parameters", .effect = Effect::Layout, .aliases = {{"--overlap-param-gather", "true"}}});
    v("backend", s.backend, {.help = "what moves tensors between processes; auto: nccl between GPUs, mpi under mpirun, else gloo", .aliases = {{"--distributed-backend", "", {"nccl", "", "gloo", ""}}}, .formerly = "engine"});
    v("interface", s.interface, {.help = "name or address of the network interface that ranks use; empty: the one that leads to the first rank"});
    v("timeout_minutes", s.timeout_minutes, {.help = "nobody waits longer for another rank", .min = 0.001, .max = 1e6, .aliases = {{"--distributed-timeout-minutes"}}});
    v("heartbeat_warning_seconds", s.heartbeat_warning_seconds, {.help = "warn about a rank that sends no heartbeat for this many seconds", .min = 0.1, .max = 1e6, .formerly = "silence_seconds"});
  }
};

// clang-format on

// What a run watches over, and what it does when something is wrong.

// clang-format off: a line per field reads as a table

struct GuardConfig {
  OnNonFinite nonfinite = OnNonFinite::Stop;
  OnSpike loss_spike = OnSpike::Log, norm_spike = OnSpike::Log;
  double loss_deviations = 6, norm_deviations = 8;
  int64_t window = 128, warmup = 128;
  int64_t skip_before = 0, skip_after = 0, rollbacks = 3;
  int64_t hash_interval = 0;
  OnCorruption corruption = OnCorruption::Stop;

  template <class S, class V>
  static void describe(S& s, V& v) {
    v("nonfinite", s.nonfinite, {.help = "after a loss or gradient that is not finite, whose update is never applied: stop, skip it and go on, or rollback to the last checkpoint and leave its samples out", .aliases = {{"--no-check-for-nan-in-loss-and-grad", "skip"}, {"--check-for-nan-in-loss-and-grad", "stop"}}});
    v("loss_spike", s.loss_spike, {.help = "after a loss far above its running mean: ignore it, log it, skip its update, rollback to the last checkpoint and leave its samples out, or stop", .aliases = {{"--check-for-spiky-loss", "log"}}});
    v("norm_spike", s.norm_spike, {.help = "the same for the norm of the gradient before clipping", .aliases = {{"--check-for-large-grads", "stop"}}});
    v("loss_deviations", s.loss_deviations, {.help = "standard deviations above the running mean from which a loss is a spike", .min = 1, .max = 1e6});
    v("norm_deviations", s.norm_deviations, {.help = "the same for the norm of the gradient", .min = 1, .max = 1e6});
    v("window", s.window, {.help = "iterations that the running mean and deviation look back, with weights that fade", .min = 2, .max = 1e9});
    v("warmup", s.warmup, {.help = "iterations before anything is called a spike", .min = 2, .max = 1e9});
    v("skip_before", s.skip_before, {.help = "rollback: batches left out before the bad one, as far as they are behind the checkpoint", .min = 0, .max = 1e9});
    v("skip_after", s.skip_after, {.help = "rollback: batches left out behind the bad one", .min = 0, .max = 1e9});
    v("rollbacks", s.rollbacks, {.help = "so many rollbacks without a new checkpoint end the run", .min = 1, .max = 1e9});
    v("hash_interval", s.hash_interval, {.help = "iterations between comparisons of the weights that several ranks hold, which find silent corruption; also before each checkpoint; 0: none", .min = 0, .max = 1e15, .aliases = {{"--check-weight-hash-across-dp-replicas-interval"}}});
    v("corruption", s.corruption, {.help = "when such weights differ: stop, or rollback to the last checkpoint"});
  }
};

// clang-format on

// What is kept of a run while it goes on, and what a run continues from.

// clang-format off: a line per field reads as a table

struct CheckpointConfig {
  std::string save, load, bert;
  int64_t interval = 0;
  std::string schedule;
  bool asynchronous = true, save_optimizer = true;
  int64_t keep = 0, keep_every = 0, keep_best = 0;
  int64_t step = 0;
  bool must_exist = false, finetune = false;
  bool load_optimizer = true, load_random = true;
  SchedulerSource scheduler = SchedulerSource::Same;

  template <class S, class V>
  static void describe(S& s, V& v) {
    v("save", s.save, {.help = "folder for checkpoints; empty: checkpoints/ in train.output where interval or schedule asks for them, else none", .aliases = {{"--save"}}});
    v("interval", s.interval, {.help = "iterations between checkpoints; 0: only at the end, where save is given", .min = 0, .max = 1e15, .aliases = {{"--save-interval"}, {"--persistent-save-interval"}}});
    v("schedule", s.schedule, {.help = "intervals by phase instead of one, each counted from where the phase before it ends, such as 10:100,18:1000,1500: every 10 until 100, every 18 until 1000, then every 1500; these checkpoints are not removed by keep"});
    v("asynchronous", s.asynchronous, {.help = "write while the training goes on, from a copy in host memory; false: the training waits, and no copy is made", .aliases = {{"--async-save", "true"}}});
    v("save_optimizer", s.save_optimizer, {.help = "write the optimizer's state too; without it a run can only begin anew from the weights", .aliases = {{"--no-save-optim", "false"}}});
    v("keep", s.keep, {.help = "how many of the newest checkpoints stay; 0: all, or with keep_every the newest one", .min = 0, .max = 1e9});
    v("keep_every", s.keep_every, {.help = "of the others, those at multiples of so many iterations stay too; 0: none", .min = 0, .max = 1e15, .aliases = {{"--save-retain-interval"}}});
    v("keep_best", s.keep_best, {.help = "and so many with the lowest validation loss", .min = 0, .max = 1e9});
    v("load", s.load, {.help = "continue from the newest good checkpoint in this folder: of checkpoints, of a run, or of one checkpoint; where there is none yet, start anew", .aliases = {{"--load"}}});
    v("bert", s.bert, {.help = "biencoder: folder with checkpoints of a BERT whose weights the encoders begin with, unless the run continues from a checkpoint of its own", .aliases = {{"--bert-load"}}});
    v("step", s.step, {.help = "continue from the checkpoint of this iteration; 0: from the newest", .min = 0, .max = 1e15, .aliases = {{"--ckpt-step"}}});
    v("must_exist", s.must_exist, {.help = "it is an error when there is nothing to load", .aliases = {{"--exit-on-missing-checkpoint", "true"}}});
    v("finetune", s.finetune, {.help = "take only the weights, and begin with iteration 1 and the first sample", .aliases = {{"--finetune", "true"}}});
    v("load_optimizer", s.load_optimizer, {.help = "continue with the optimizer's state and the position in the learning rate's schedule; false: both start anew", .aliases = {{"--no-load-optim", "false"}}});
    v("load_random", s.load_random, {.help = "dropout goes on with the seed of the checkpoint; false: with train.seed", .aliases = {{"--no-load-rng", "false"}}});
    v("scheduler", s.scheduler, {.help = "where the schedule of learning rate and weight decay differs from the checkpoint's. same: refuse, new: follow this configuration, checkpoint: follow the checkpoint", .aliases = {{"--override-opt_param-scheduler", "new"}, {"--override-opt-param-scheduler", "new"}, {"--override-lr-scheduler", "new"}, {"--use-checkpoint-opt_param-scheduler", "checkpoint"}, {"--use-checkpoint-opt-param-scheduler", "checkpoint"}, {"--use-checkpoint-lr-scheduler", "checkpoint"}}});
  }
};

// clang-format on

}  // namespace bev
