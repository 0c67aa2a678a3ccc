#include "config/rules/config_check.h"

#include <algorithm>

#include "config/rules/rule.h"
#include "unit/config/loading.h"

namespace bev {
namespace {

void expect_fine(const Args& args, Purpose purpose = Purpose::Plan) {
  const auto problems = problems_of(args, purpose);
  EXPECT_TRUE(problems.empty()) << report(problems);
}

// Training with more flags behind the least that it needs.
Args training(const Args& more) { return small_training() + more; }
Args sampled(const Args& more) {
  return small_model() + Args{"--train-samples", "1000", "--lr", "1e-3", "--mock-data"} + more;
}

TEST(Check, HeadsDivideWidth) {
  expect_problem(small_model() + Args{"--hidden-size", "1000", "--num-attention-heads", "12"},
                 {"width 1000 is not a multiple of 12 heads", "model.width = 1000 (--hidden-size)",
                  "leaves 4", "996 or 1008", "8, 10, 20 or 25", "model.head_dim"});
  expect_fine(small_model() +
              Args{"--hidden-size", "1000", "--num-attention-heads", "12", "--kv-channels", "64"});
}

TEST(Check, KeyValueHeadsDivideHeads) {
  expect_problem(small_model() + Args{"--group-query-attention", "--num-query-groups", "3"},
                 {"4 heads", "3 key/value heads", "leaves 1", "2"});
  expect_problem(small_model() + Args{"--group-query-attention", "--num-query-groups", "8"},
                 {"more key/value heads (8)"});
  expect_fine(small_model() + Args{"--group-query-attention", "--num-query-groups", "2"});
}

TEST(Check, RotaryPart) {
  const Args rope = small_model() + Args{"--position-embedding-type", "rope"};  // heads of 16
  expect_fine(rope);
  expect_fine(rope + Args{"--rotary-percent", "0.25"});
  expect_problem(rope + Args{"--rotary-percent", "0.2"}, {"3 numbers", "16 x rope_fraction 0.2"});
  expect_problem(rope + Args{"--rotary-percent", "0"}, {"no part of a head"});
  expect_problem(rope + Args{"--kv-channels", "15"}, {"15 numbers"});
  expect_fine(small_model() + Args{"--rotary-percent", "0"});
}

TEST(Check, RopeScaling) {
  expect_problem(small_model() + Args{"--use-rope-scaling"}, {"not rotary", "model.position rope"});
  const Args scaled =
      small_model() + Args{"--use-rope-scaling", "--position-embedding-type", "rope"};
  expect_fine(scaled);
  expect_problem(scaled + Args{"--model.rope_low", "4"}, {"rope_low must lie below rope_high"});
}

TEST(Check, LargeHeadsAndEmptyMlp) {
  expect_problem(small_model() + Args{"--hidden-size", "4096", "--num-attention-heads", "4"},
                 {"a head has 1024 numbers", "at least 8 heads"});
  expect_problem(small_model() + Args{"--hidden-size", "16", "--swiglu"},
                 {"inner size of 0", "model.ffn 43"});
  expect_fine(small_model() + Args{"--hidden-size", "16", "--swiglu", "--ffn-hidden-size", "48"});
  expect_fine(small_model() + Args{"--hidden-size", "24", "--swiglu"});
}

TEST(Check, SequenceAndPositions) {
  for (const char* kind : {"learned_absolute", "rope"})
    expect_problem(
        small_model() + Args{"--position-embedding-type", kind, "--max-position-embeddings", "100"},
        {"128 tokens", "100 positions", "tokens 101 to 128", "at most 100", "at least 128"});
  expect_fine(small_model() +
              Args{"--position-embedding-type", "none", "--max-position-embeddings", "100"});
  expect_fine(small_model() + Args{"--max-position-embeddings", "128"});
}

TEST(Check, BatchesDivide) {
  expect_problem(small_model() + Args{"--global-batch-size", "7"},
                 {"global batch 7", "micro-batch 2", "leaves 1", "6 or 8", "micro_batch 1 or 7"});
  expect_problem(small_model() + Args{"--global-batch-size", "1"}, {"global_batch 2"});
  expect_fine(small_model() + Args{"--global-batch-size", "8"});
}

TEST(Check, TrainingLength) {
  const Args none = small_model() + Args{"--lr", "1e-3", "--mock-data"};
  expect_problem(none, {"training length is missing"}, Purpose::Train);
  expect_fine(none);
  expect_problem(training({"--train-samples", "1000"}), {"given twice"}, Purpose::Train);
  expect_problem(sampled({"--train-samples", "3", "--global-batch-size", "4"}),
                 {"3 samples", "4 samples", "at least 4"}, Purpose::Train);
}

TEST(Check, LearningRateUnits) {
  expect_problem(training({"--lr-decay-samples", "10"}),
                 {"decay is not in the unit", "optim.decay_iterations"}, Purpose::Train);
  expect_problem(sampled({"--lr-decay-iters", "10"}),
                 {"decay is not in the unit", "optim.decay_samples"}, Purpose::Train);
  expect_problem(training({"--lr-warmup-samples", "10"}), {"warm-up is not in the unit"},
                 Purpose::Train);
  expect_problem(sampled({"--lr-warmup-iters", "10"}), {"warm-up is not in the unit"},
                 Purpose::Train);
  expect_problem(training({"--lr-decay-iters", "50", "--lr-decay-samples", "10"}),
                 {"given twice", "optim.decay_iterations alone"}, Purpose::Train);
  expect_problem(training({"--lr-warmup-iters", "5", "--lr-warmup-samples", "10"}), {"given twice"},
                 Purpose::Train);
  expect_fine(training({"--lr-warmup-iters", "5", "--lr-decay-iters", "50"}), Purpose::Train);
  expect_fine(sampled({"--lr-warmup-samples", "5", "--lr-decay-samples", "50"}), Purpose::Train);
}

TEST(Check, WarmUp) {
  expect_problem(training({"--lr-warmup-fraction", "0.1", "--lr-warmup-iters", "5"}),
                 {"fraction and as a length"}, Purpose::Train);
  expect_problem(training({"--lr-warmup-iters", "100"}),
                 {"does not end before", "train.iterations = 100", "at most 99"}, Purpose::Train);
  expect_problem(training({"--lr-warmup-iters", "50", "--lr-decay-iters", "50"}),
                 {"optim.decay_iterations = 50"}, Purpose::Train);
  expect_problem(training({"--lr-warmup-fraction", "1"}), {"a fraction below 1"}, Purpose::Train);
  expect_fine(training({"--lr-warmup-iters", "99"}), Purpose::Train);
  expect_problem(training({"--lr-warmup-init", "1"}), {"warmup_init 1 is above lr"},
                 Purpose::Train);
}

TEST(Check, Wsd) {
  expect_problem(training({"--lr-decay-style", "WSD"}),
                 {"WSD needs", "optim.wsd_iterations above 0"}, Purpose::Train);
  expect_problem(sampled({"--lr-decay-style", "WSD"}), {"optim.wsd_samples above 0"},
                 Purpose::Train);
  expect_problem(training({"--lr-decay-style", "WSD", "--lr-wsd-decay-samples", "5"}),
                 {"final decay is not in the unit"}, Purpose::Train);
  expect_problem(training({"--lr-decay-style", "WSD", "--lr-wsd-decay-iters", "101"}),
                 {"longer than the whole schedule", "at most 100"}, Purpose::Train);
  expect_fine(training({"--lr-decay-style", "WSD", "--lr-wsd-decay-iters", "20"}), Purpose::Train);
}

TEST(Check, LearningRates) {
  expect_problem(training({"--min-lr", "0.01"}), {"min_lr 0.01 is above lr 0.001"}, Purpose::Train);
  expect_problem(training({"--lr", "0"}), {"optim.lr is missing"}, Purpose::Train);
}

TEST(Check, WeightDecayRamp) {
  const Args linear = training({"--weight-decay-incr-style", "linear"});
  expect_problem(linear, {"needs its start and its end"}, Purpose::Train);
  expect_problem(linear + Args{"--start-weight-decay", "0.1"}, {"needs its start and its end"},
                 Purpose::Train);
  expect_problem(linear + Args{"--start-weight-decay", "0.1", "--end-weight-decay", "0.01"},
                 {"would fall", "from 0.1 to 0.01"}, Purpose::Train);
  expect_fine(linear + Args{"--start-weight-decay", "0.01", "--end-weight-decay", "0.1"},
              Purpose::Train);
  expect_problem(training({"--start-weight-decay", "0.1"}), {"weight decay is constant"},
                 Purpose::Train);
  expect_problem(training({"--end-weight-decay", "-0.5"}), {"weight decay is constant"},
                 Purpose::Train);
}

TEST(Check, Devices) {
  expect_no_problem(small_model() + Args{"--device", "cuda"});
  expect_no_problem(small_model() + Args{"--device", "cuda", "--fp16"});
  expect_problem(small_model() + Args{"--device", "cuda", "--device.precision", "f64"},
                 {"the cuda device has no precision f64", "bf16, fp16 or f32"});
  expect_problem(small_model() + Args{"--fp16"}, {"the cpu device has no precision fp16"});
  expect_problem(small_model() + Args{"--main-grads-dtype", "bf16"}, {"but not bf16 on cuda"});
  expect_no_problem(small_model() + Args{"--device", "cuda", "--main-grads-dtype", "bf16"});
  expect_problem(
      small_model() + Args{"--device", "cuda", "--exp-avg-dtype", "bf16", "--optimizer", "sgd"},
      {"bf16 moments with the optimizer sgd"});
  expect_problem(small_model() + Args{"--device.precision", "f64"},
                 {"cpu device has no precision f64"});
  expect_problem(small_model() + Args{"--device", "reference", "--bf16"},
                 {"reference device has no precision bf16"});
  expect_problem(small_model() + Args{"--device", "reference", "--device.precision", "f32"},
                 {"it stores f64"});
  expect_fine(small_model() + Args{"--bf16"});
  expect_fine(small_model() + Args{"--device", "reference", "--device.precision", "f64"});
  expect_problem(small_model() + Args{"--device", "null", "--bf16"},
                 {"null device runs nothing", "bevatron plan"});
}

TEST(Check, OptionsOfLamb) {
  expect_no_problem(small_model() + Args{"--optimizer", "mylamb3", "--alpha", "0.5"});
  expect_no_problem(small_model() + Args{"--optimizer", "mylamb2", "--alpha", "0.5"});
  expect_no_problem(small_model() + Args{"--optimizer", "lamb", "--optim.nvlamb", "true"});
  expect_no_problem(small_model() + Args{"--optimizer", "lambtp", "--optim.lambtp_solution", "3"});
  expect_no_problem(small_model() +
                    Args{"--optimizer", "lamb-paper", "--optim.lamb_norms", "tensor-shard"});
  expect_problem(small_model() + Args{"--alpha", "0.5"},
                 {"optim.alpha with the optimizer adam", "mylamb3 reads"});
  expect_problem(small_model() + Args{"--optimizer", "mylamb", "--optim.nvlamb", "true"},
                 {"optim.nvlamb with the optimizer mylamb", "only lamb reads it"});
  expect_problem(small_model() + Args{"--optimizer", "lamb", "--optim.lambtp_solution", "2"},
                 {"only lambtp reads it"});
  expect_problem(small_model() + Args{"--optim.lamb_norms", "tensor-shard"},
                 {"optim.lamb_norms with the optimizer adam"});
  expect_problem(small_model() + Args{"--optimizer", "lambtp", "--optim.lambtp_solution", "4"}, {});
  expect_problem(
      small_model() + Args{"--device", "cuda", "--exp-avg-dtype", "bf16", "--optimizer", "lamb"},
      {"bf16 moments with the optimizer lamb"});
}

TEST(Check, RanksAndWhatTheyDivide) {
  for (const char* flag : {"--tensor-model-parallel-size", "--pipeline-model-parallel-size"})
    expect_problem(small_model() + Args{flag, "2"}, {"no whole number of copies", "--threads 2"});
  const Args two = small_model() + Args{"--threads", "2"};
  expect_problem(two + Args{"--context-parallel-size", "2"}, {"only 1 works in this version"});
  expect_problem(small_model() + Args{"--threads", "3", "--tensor-model-parallel-size", "3"},
                 {"4 heads do not divide over 3 tensor ranks", "tensor 1, 2 or 4"});
  expect_problem(small_model() + Args{"--threads", "4", "--pipeline-model-parallel-size", "4"},
                 {"2 layers do not fill 4 stages"});
  expect_problem(
      two + Args{"--pipeline-model-parallel-size", "2", "--decoder-first-pipeline-num-layers", "2"},
      {"2 layers do not fill 2 stages"});
  expect_problem(two + Args{"--tensor-model-parallel-size", "2", "--parallel.chunks", "2"},
                 {"2 chunks with 1 pipeline ranks"});
  expect_problem(two + Args{"--parallel.schedule", "interleaved"}, {"1 chunks"});
  expect_problem(two + Args{"--global-batch-size", "3"}, {"on 2 ranks", "global_batch"});
  expect_problem(two + Args{"--train-samples", "3"}, {"one step takes 4 samples"});
}

TEST(Check, TheInnerSizeThatFollowsDividesToo) {
  expect_problem({"--num-layers", "1", "--hidden-size", "768", "--num-attention-heads", "12",
                  "--vocab-size", "64", "--seq-length", "8", "--micro-batch-size", "1", "--swiglu",
                  "--threads", "12", "--tensor-model-parallel-size", "12"},
                 {"inner size 2048 does not divide over 12 tensor ranks", "tensor 4, 8, 16 or 32"});
}

TEST(Check, LayersOfAVirtualStage) {
  const Args four = small_model() + Args{"--threads", "4", "--pipeline-model-parallel-size", "4",
                                         "--num-layers-per-virtual-pipeline-stage"};
  expect_problem(four + Args{"2", "--num-layers", "12"},
                 {"the 3 layers of a pipeline rank are no whole number of stages of 2",
                  "chunk_layers 1 or 3"});
  expect_problem(four + Args{"1", "--num-layers", "10"},
                 {"10 layers do not divide over 4 pipeline ranks", "layers 8 or 12"});
  expect_problem(four + Args{"1", "--num-layers", "8", "--parallel.chunks", "2"},
                 {"given twice", "chunk_layers alone"});
  expect_problem(small_model() + Args{"--num-layers-per-virtual-pipeline-stage", "1"},
                 {"2 chunks with 1 pipeline ranks"});
  expect_fine(four + Args{"1", "--num-layers", "8"});
}

TEST(Check, Recomputation) {
  expect_problem(small_model() + Args{"--recompute-num-layers", "3"},
                 {"3 is more than the 2 layers of the model", "1 to 2, or 0"});
  const Args three =
      small_model() +
      Args{"--num-layers", "9", "--recompute-granularity", "full", "--recompute-num-layers", "3"};
  const Args pipeline{"--threads", "4", "--pipeline-model-parallel-size", "4"};
  expect_fine(three + pipeline);
  expect_problem(three + pipeline + Args{"--num-layers", "8"},
                 {"more than the 2 layers of any stage", "1 to 2, or 0"});
  expect_fine(three + pipeline + Args{"--decoder-first-pipeline-num-layers", "3"});
  expect_problem(three + Args{"--threads", "3", "--pipeline-model-parallel-size", "3",
                              "--num-layers-per-virtual-pipeline-stage", "1"},
                 {"more than the 1 layer of any stage", "1, or 0"});
}

TEST(Check, DistributedInputs) {
  const Args tensor = small_model() + Args{"--threads", "2", "--tensor-model-parallel-size", "2"};
  const Args full{"--recompute-granularity", "full", "--distribute-saved-activations"};
  expect_fine(tensor + full);
  expect_fine(small_model() + full);
  expect_problem(tensor + Args{"--recompute-activations", "--distribute-saved-activations"},
                 {"recompute.distribute with the granularity selective", "granularity full"});
  expect_problem(tensor + full + Args{"--sequence-parallel"},
                 {"recompute.distribute with parallel.sequence", "nothing is kept twice"});
  const Args odd{"--hidden-size", "63",  "--kv-channels",      "16",
                 "--seq-length",  "127", "--micro-batch-size", "1"};
  expect_fine(tensor + odd);
  expect_problem(tensor + full + odd,
                 {"127 tokens of width 63 do not divide over 2 tensor ranks", "126 or 128"});
}

TEST(Check, DataIsNeededForTraining) {
  expect_problem(small_model() + Args{"--train-iters", "5", "--lr", "1"}, {"--mock-data"},
                 Purpose::Train);
}

TEST(Check, ProductsThatLeave64Bits) {
  expect_problem({"--num-layers", "100000", "--hidden-size", "1048576", "--num-attention-heads",
                  "65536", "--vocab-size", "268435456", "--ffn-hidden-size", "16777216",
                  "--seq-length", "1", "--micro-batch-size", "1"},
                 {"more parameters than can be counted"});
  expect_problem(small_model() + Args{"--seq-length", "268435456", "--micro-batch-size", "16777216",
                                      "--lr", "1"},
                 {"too many tokens"});
  expect_problem(training({"--train-iters", "1e15", "--global-batch-size", "268435456"}),
                 {"more tokens than can be counted"}, Purpose::Train);
}

TEST(Check, ConfigAlone) {
  const std::vector<Problem> problems = check_config(Config{});
  EXPECT_EQ(problems.size(), 6u) << report(problems);
  Config config = load(small_model()).config;
  EXPECT_TRUE(check_config(config).empty());
  config.model.heads = 5;
  ASSERT_EQ(check_config(config).size(), 1u);
  EXPECT_TRUE(mentions(check_config(config)[0], "model.heads = 5 (default)"));
}

TEST(Check, NearestLegalValues) {
  EXPECT_EQ(multiples_near(1000, 12), "996 or 1008");
  EXPECT_EQ(multiples_near(5, 12), "12");
  EXPECT_EQ(multiples_near(24, 12), "24");
  EXPECT_EQ(divisors_near(1000, 12), "8, 10, 20 or 25");
  EXPECT_EQ(divisors_near(12, 5), "3, 4, 6 or 12");
  EXPECT_EQ(divisors_near(7, 3), "1 or 7");
  EXPECT_EQ(divisors_near(1, 3), "1");
}

// Samples of BERT from files: what they need, and that no GPT gets them.
TEST(Check, BertReadsSentences) {
  const Args length{"--train-iters", "100", "--lr", "1e-3"};
  const Args bert = small_model() + length + Args{"pretrain_bert.py", "--data-path", "a_sentence"};
  const Args vocabulary{"--vocab-file", "vocab.txt"};
  expect_fine(bert + vocabulary, Purpose::Train);
  expect_fine(bert, Purpose::Plan);
  expect_problem(bert, {"the file of the tokenizer bert-lower is not given", "--vocab-file"},
                 Purpose::Train);
  expect_problem(bert + Args{"--tokenizer-type", "GPT2BPETokenizer"},
                 {"tokenizer gpt2 has no tokens for masks", "BertWordPieceLowerCase",
                  "`bevatron train pretrain_gpt.py ...`"},
                 Purpose::Train);
  expect_problem(bert + Args{"--data.tokenizer", "none"}, {"needs a tokenizer"}, Purpose::Train);
  expect_problem(bert + vocabulary + Args{"--model.head_activation", "swiglu"},
                 {"model.head_activation one without a gate"}, Purpose::Train);
  expect_problem(bert + vocabulary + Args{"--seq-length", "4"}, {"4 tokens has no room"},
                 Purpose::Train);
  expect_problem(bert + vocabulary + Args{"--max-preds-per-seq", "129"},
                 {"exceeds the sequence of 128"}, Purpose::Train);
  expect_problem(bert + vocabulary + Args{"--eod-mask-loss", "--data.eod", "3"},
                 {"data.mask_eod and data.reset_positions false"}, Purpose::Train);
}

TEST(Check, T5HasTwoTexts) {
  const Args t5 = small_model() + Args{"pretrain_t5.py"};
  expect_fine(t5 + Args{"--decoder-num-layers", "3", "--decoder-seq-length", "32"});
  expect_fine(t5 + Args{"--position-embedding-type", "relative"});
  expect_problem(t5 + Args{"--position-embedding-type", "rope"},
                 {"model.family t5", "model.position learned or relative"});
  expect_problem(t5 + Args{"--max-position-embeddings", "200", "--decoder-seq-length", "300"},
                 {"a sequence of 300 tokens", "train.decoder_sequence at most 200"});
  expect_problem(t5 + Args{"--model.scale_head_input", "true", "--model.tied", "false"},
                 {"model.scale_head_input false without model.tied"});
  expect_problem(t5 + Args{"--reset-attention-mask", "--data.eod", "3"},
                 {"data.reset_attention and data.separate_sequences false"});
  expect_problem(t5 + Args{"--data.eod", "3", "--eod-mask-loss"}, {"data.mask_eod"});
  expect_problem(
      t5 + Args{"--model.position", "relative", "--relative-attention-max-distance", "16"},
      {"model.relative_distance 16", "at least 17"});
  expect_problem(small_model() + Args{"--model.position", "relative"},
                 {"model.family gpt has no encoder beside a decoder", "pretrain_t5.py"});
  expect_problem(small_model() + Args{"--decoder-seq-length", "16"}, {"train.decoder_sequence 0"});
  expect_problem(small_model() + Args{"--model.mask_cross_padding", "false"},
                 {"model.family gpt has no encoder", "model.mask_cross_padding true"});
  expect_problem(small_model() + Args{"--model.head_bias", "false"}, {"model.head_bias true"});
}

TEST(Check, T5IsSplitBetweenEncoderAndDecoder) {
  const Args t5 = small_model() + Args{"pretrain_t5.py", "--num-layers", "4"};
  const auto split = [&](const char* ranks, const char* stage) {
    return t5 + Args{"--pipeline-model-parallel-size",       ranks, "--parallel.ranks", ranks,
                     "--pipeline-model-parallel-split-rank", stage};
  };
  expect_fine(split("4", "0"));
  expect_fine(split("8", "4"));
  expect_problem(split("1", "1"), {"parallel.decoder_stage 1 with one stage"});
  expect_problem(split("4", "4"), {"do not fill 4 stages", "parallel.decoder_stage 1 to 3"});
  expect_problem(split("8", "5"), {"do not fill 8 stages", "parallel.decoder_stage 4 to 4"});
  expect_problem(split("16", "0"), {"do not fill 16 stages", "pipeline x chunks at most 8"});
  expect_problem(split("4", "2") + Args{"--decoder-first-pipeline-num-layers", "1"},
                 {"parallel.first_layers and parallel.last_layers 0"});
}

TEST(Check, T5ReadsSentencesAndSentinels) {
  const Args t5 =
      small_model() + Args{"--train-iters", "100",        "--lr",         "1e-3", "pretrain_t5.py",
                           "--data-path",   "a_sentence", "--seq-length", "128"};
  const Args vocabulary{"--vocab-file", "vocab.txt", "--vocab-extra-ids", "100"};
  expect_fine(t5 + vocabulary, Purpose::Train);
  expect_problem(t5 + Args{"--tokenizer-type", "GPT2BPETokenizer"},
                 {"tokenizer gpt2 has no sentinels", "--vocab-extra-ids 100",
                  "`bevatron train pretrain_gpt.py ...`"},
                 Purpose::Train);
  expect_problem(t5 + Args{"--vocab-file", "vocab.txt"}, {"needs extra ids"}, Purpose::Train);
  expect_problem(t5 + Args{"--tokenizer-type", "BertWordPieceCase", "--vocab-file", "vocab.txt",
                           "--compat", "classic"},
                 {"needs extra ids"}, Purpose::Train);
  expect_fine(t5 + Args{"--tokenizer-type", "BertWordPieceCase", "--vocab-file", "vocab.txt"},
              Purpose::Train);
  // 18 of 126 tokens are masked.
  expect_fine(t5 + vocabulary + Args{"--decoder-seq-length", "20"}, Purpose::Train);
  expect_problem(t5 + vocabulary + Args{"--decoder-seq-length", "19"},
                 {"a decoder of 19 tokens has no room", "18 tokens are masked"}, Purpose::Train);
  expect_problem(t5 + vocabulary + Args{"--seq-length", "3"}, {"3 tokens has no room"},
                 Purpose::Train);
}

TEST(Check, TitlesBelongToOneFileOfABiencoder) {
  const Args gpt = small_model() + Args{"--train-iters", "100", "--lr", "1e-3"};
  expect_problem(gpt + Args{"--data-path", "a", "--titles-data-path", "t"},
                 {"data.titles_path needs a bi-encoder", "pretrain_ict.py"}, Purpose::Train);
  const Args biencoder = gpt + Args{"--model.family", "biencoder"};
  const auto has_problem = [&](const Args& more, std::string_view text) {
    const auto problems = problems_of(biencoder + more, Purpose::Train);
    return std::any_of(problems.begin(), problems.end(),
                       [&](const Problem& p) { return mentions(p, text); });
  };
  const Args titles{"--titles-data-path", "t", "--vocab-file", "v", "--data-path"};
  constexpr std::string_view kSingleFile = "needs a single file in data.path";
  EXPECT_TRUE(has_problem(titles + Args{"0.5", "a", "0.5", "b"}, kSingleFile));
  EXPECT_FALSE(has_problem(titles + Args{"a"}, kSingleFile));
  EXPECT_TRUE(has_problem(Args{"--data-path", "a", "--tokenizer-type", "GPT2BPETokenizer"},
                          "tokenizer gpt2 has no [CLS] and [SEP]"));
}

TEST(Check, GptReadsNoSentences) {
  const Args gpt = small_model() + Args{"--train-iters", "100", "--lr", "1e-3"};
  for (const char* file : {"dir/a_text_sentence", "a_sentence.bin"})
    expect_problem(gpt + Args{"--data-path", "0.5", "b", "0.5", file},
                   {"a GPT is trained on sentences", file, "pretrain_bert.py"}, Purpose::Train);
  expect_fine(gpt + Args{"--data-path", "a_text_document", "b_sentences"}, Purpose::Train);
  expect_problem(gpt + Args{"--data-path", "a", "--tokenizer-type", "BertWordPieceCase"},
                 {"tokenizer of BERT", "pretrain_bert.py"}, Purpose::Train);
}

TEST(Check, OptionsOfABiencoder) {
  const Args ict = Args{"pretrain_ict.py"} + small_model();
  expect_fine(ict + Args{"--biencoder-projection-dim", "128", "--retriever-score-scaling"});
  expect_fine(ict + Args{"--model.norm_placement", "post"});
  expect_problem(ict + Args{"--position-embedding-type", "rope"},
                 {"model.family biencoder does not have these options", "model.position learned"});
  expect_problem(ict + Args{"--context-parallel-size", "2", "--threads", "2"},
                 {"parallel.context 2: only 1 works"});
  expect_problem(
      small_model() + Args{"--retriever-report-topk-accuracies", "1", "5"},
      {"model.family gpt does not compare queries", "pretrain_ict.py", "log.top_k empty"});
  expect_problem(ict + Args{"--retriever-report-topk-accuracies", "1", "few"},
                 {"log.top_k is not a list of whole numbers", "1 5 20"});
  expect_problem(ict + Args{"--log.top_k", "0"}, {"log.top_k is not a list"});
  expect_problem(ict + Args{"--log.top_k", "1", "2", "3", "4", "5", "6", "7", "8"},
                 {"log.top_k has 8 numbers"});
}

TEST(Check, ABiencoderComparesPairs) {
  const Args one = Args{"pretrain_ict.py"} + training({"--micro-batch-size", "1"});
  expect_problem(one, {"one pair has no other context", "train.micro_batch at least 2"},
                 Purpose::Train);
  expect_fine(one + Args{"--threads", "2"}, Purpose::Train);
}

// Both encoders have stages.
TEST(Check, StagesOfABiencoder) {
  const Args ict = Args{"pretrain_ict.py", "--num-layers", "2", "--threads", "4"} + small_model();
  expect_fine(ict + Args{"--pipeline-model-parallel-size", "4"});
  expect_problem(
      ict + Args{"--pipeline-model-parallel-size", "4", "--biencoder-shared-query-context-model"},
      {"2 layers do not fill 4 stages"});
}

}  // namespace
}  // namespace bev
