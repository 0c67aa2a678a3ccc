// The tables of Megatron's flags through the command line: what every row promises, and the class
// of flags that matter most.
#include "config/megatron/megatron_flags.h"

#include "config/parse/field.h"
#include "config/parse/notation.h"
#include "unit/config/loading.h"

namespace bev {
namespace {

struct Outcome {
  std::vector<Problem> problems;
  std::vector<std::string> notes;
};

Outcome outcome_of(const Args& args) {
  Findings findings;
  const LoadedConfig loaded = load_unchecked(small_model() + args, {}, Purpose::Plan, findings);
  return {findings.problems, loaded.notes};
}

Args words(std::string_view text) {
  Args list;
  for (const std::string_view word : split_words(text)) list.emplace_back(word);
  return list;
}

// A value of the right type that is not the default.
Args other_value(const MegatronFlag& flag) {
  Args values;
  for (const std::string_view kind : split_words(flag.takes)) {
    if (kind == "...") break;
    if (kind == "N" || kind == "X") {
      values.emplace_back("987654");
    } else if (kind == "TEXT") {
      values.emplace_back("something/else");
    } else {
      const auto choices = split_words(kind, '|');
      for (const std::string_view choice : choices)
        if (choice != flag.standard && choice != flag.also) values.emplace_back(choice);
      values.resize(std::min<size_t>(values.size(), 1));
    }
  }
  return values;
}

void expect_later(const std::string& name, const MegatronFlag& flag, const FlagTopic& topic) {
  if (flag.takes == "off") {
    EXPECT_TRUE(outcome_of({name}).problems.empty()) << name;
    return;
  }
  const Outcome refused = outcome_of(Args{name} + other_value(flag));
  ASSERT_EQ(refused.problems.size(), 1u) << name;
  EXPECT_EQ(refused.problems[0].what.find(name), 0u) << refused.problems[0].what;
  EXPECT_EQ(refused.problems[0].why, topic.reason) << name;
  EXPECT_TRUE(refused.notes.empty()) << name;
  for (const std::string_view accepted : {flag.standard, flag.also}) {
    if (accepted.empty()) continue;
    const Outcome fine = outcome_of(Args{name} + words(accepted));
    EXPECT_TRUE(fine.problems.empty() && fine.notes.empty()) << name << " " << accepted;
  }
}

void expect_noted(const std::string& name, const MegatronFlag& flag, const FlagTopic& topic) {
  const Args values = flag.is_switch() ? Args{} : other_value(flag);
  const Outcome outcome = outcome_of(Args{name} + values + Args{name} + values);
  EXPECT_TRUE(outcome.problems.empty()) << report(outcome.problems);
  ASSERT_EQ(outcome.notes.size(), 1u) << name;
  EXPECT_EQ(outcome.notes[0].find(name + " is accepted and changes nothing: "), 0u);
  EXPECT_NE(outcome.notes[0].find(topic.reason), std::string::npos);
  EXPECT_EQ(outcome.notes[0].find('\n'), std::string::npos);
}

TEST(MegatronFlags, EveryRowKeepsItsPromise) {
  size_t flags = 0;
  for (const FlagTopic& topic : megatron_topics()) {
    for (const MegatronFlag& flag : topic.flags) {
      for (const std::string_view spelling : split_words(flag.flag)) {
        ++flags;
        if (topic.kind == FlagClass::Later) {
          expect_later(std::string(spelling), flag, topic);
        } else {
          expect_noted(std::string(spelling), flag, topic);
        }
      }
    }
  }
  EXPECT_GT(flags, 770u);
}

TEST(MegatronFlags, RowsAreWellFormed) {
  for (const FlagTopic& topic : megatron_topics()) {
    EXPECT_FALSE(topic.title.empty());
    EXPECT_FALSE(topic.reason.empty() || topic.reason.ends_with('.')) << topic.title;
    EXPECT_FALSE(topic.flags.empty()) << topic.title;
    for (const MegatronFlag& flag : topic.flags) {
      for (const std::string_view spelling : split_words(flag.flag))
        EXPECT_EQ(spelling.substr(0, 2), "--") << flag.flag;
      EXPECT_TRUE(!flag.is_switch() || flag.standard.empty()) << flag.flag;
      for (const std::string_view text : {flag.standard, flag.also})
        for (const std::string_view word : split_words(text))
          EXPECT_EQ(wrong_value(flag, word), "") << flag.flag;
    }
  }
}

TEST(MegatronFlags, TypesAreChecked) {
  for (const FlagTopic& topic : megatron_topics()) {
    for (const MegatronFlag& flag : topic.flags) {
      if (flag.is_switch() || flag.takes.starts_with("TEXT")) continue;
      const std::string name(split_words(flag.flag)[0]);
      Args args{name};
      for (size_t i = 0; i < value_count(flag).least; ++i) args.emplace_back("no such");
      const Outcome outcome = outcome_of(args);
      ASSERT_EQ(outcome.problems.size(), 1u) << name;
      EXPECT_TRUE(mentions(outcome.problems[0], name + " has an impossible value"))
          << report(outcome.problems);
      EXPECT_TRUE(mentions(outcome.problems[0], "\"no such\""));
      EXPECT_TRUE(outcome.notes.empty()) << name;
    }
  }
}

TEST(MegatronFlags, MissingValues) {
  expect_problem(small_model() + Args{"--num-experts"}, {"--num-experts has no value"});
  expect_problem(small_model() + Args{"--num-workers", "--seed", "3"},
                 {"--num-workers has no value"});
  expect_problem(small_model() + Args{"--model-spec", "a"}, {"too few values", "1 of 2"});
}

TEST(MegatronFlags, ValuesAsPeopleWriteThem) {
  EXPECT_TRUE(outcome_of({"--moe-router-topk", "2.0"}).problems.empty());
  EXPECT_TRUE(outcome_of({"--dino-head-hidden-size", "2_048"}).problems.empty());
  EXPECT_TRUE(outcome_of({"--mask-prob=.15"}).problems.empty());
  EXPECT_TRUE(outcome_of({"--cp-comm-type", "p2p", "a2a"}).problems.empty());
  EXPECT_TRUE(outcome_of({"--moe-shared-expert-gate", "false"}).problems.empty());
  EXPECT_EQ(outcome_of({"--moe-shared-expert-gate", "true"}).problems.size(), 1u);
  EXPECT_EQ(outcome_of({"--lazy-mpu-init", "true"}).notes.size(), 1u);
  EXPECT_TRUE(outcome_of({"--num-workers", "1_0"}).problems.empty());
}

TEST(MegatronFlags, RefusalsNameFlagValueAndDefault) {
  expect_problem(
      small_model() + Args{"--expert-model-parallel-size", "8"},
      {"--expert-model-parallel-size 8: only 1 works in this version", "no mixture of experts"});
  expect_problem(
      small_model() + Args{"--pretrained-checkpoint", "out"},
      {"--pretrained-checkpoint out does not work in this version", "no such kind of checkpoint"});
  expect_problem(small_model() + Args{"--optimizer", "muon"},
                 {"--optimizer muon does not work in this version", "adam, sgd, lamb"});
  expect_problem(small_model() + Args{"--tokenizer-type", "SFTTokenizer"},
                 {"--tokenizer-type SFTTokenizer does not work", "GPT2BPETokenizer"});
  expect_problem(small_model() + Args{"--position-embedding-type", "yarn"},
                 {"--position-embedding-type yarn does not work", "learned_absolute, rope"});
}

enum class Expected { Sets, Later, Noted };

// A mistake here would train another model than the one asked for, and say nothing.
TEST(MegatronFlags, ClassesOfImportantFlags) {
  const std::pair<Expected, std::vector<std::string_view>> classes[] = {
      {Expected::Sets,
       {"--no-bias-gelu-fusion",
        "--swiglu",
        "--disable-bias-linear",
        "--group-query-attention",
        "--num-query-groups",
        "--window-size",
        "--no-position-embedding",
        "--bf16",
        "--fp16",
        "--loss-scale",
        "--initial-loss-scale",
        "--hysteresis",
        "--main-grads-dtype",
        "--grad-reduce-in-bf16",
        "--exp-avg-dtype",
        "--deterministic-mode",
        "--mock-data",
        "--rampup-batch-size",
        "--tensor-model-parallel-size",
        "--eod-mask-loss",
        "--batch-size",
        "--warmup",
        "--model-parallel-size",
        "--checkpoint-activations",
        "--exit-interval",
        "--save",
        "--save-interval",
        "--load",
        "--finetune",
        "--no-load-optim",
        "--override-opt_param-scheduler",
        "--tokenizer-type",
        "--no-pad-vocab-size",
        "--rotary-base",
        "--mask-prob",
        "--short-seq-prob",
        "--max-preds-per-seq",
        "--bert-no-binary-head",
        "--init-method-std"}},
      {Expected::Later,
       {"--fp8-format",
        "--num-experts",
        "--pretrained-checkpoint",
        "--use-checkpoint-args",
        "--rotary-interleaved",
        "--rotary-seq-len-interpolation-factor",
        "--apply-residual-connection-post-layernorm",
        "--apply-layernorm-1p",
        "--fp32-residual-connection",
        "--init-method-xavier-uniform",
        "--padded-vocab-size",
        "--iterations-to-skip",
        "--decoupled-lr",
        "--use-mup",
        "--sample-rate",
        "--pretrained-bert",
        "--retro-add-retriever",
        "--perform-rl-step",
        "--vision-pretraining",
        "--yaml-cfg",
        "--no-initialization",
        "--quick-geglu",
        "--softmax-type"}},
      {Expected::Noted,
       {"--use-flash-attn", "--attention-backend", "--no-masked-softmax-fusion",
        "--log-timers-to-tensorboard", "--wandb-project", "--no-one-logger",
        "--train-sync-interval", "--profile", "--log-straggler", "--num-workers",
        "--overlap-p2p-communication", "--enable-cuda-graph", "--lazy-mpu-init",
        "--transformer-impl", "--manual-gc", "--log-throughput", "--fp32-embedding",
        "--presplit-sentences"}}};
  for (const auto& [expected, names] : classes) {
    for (const std::string_view name : names) {
      bool sets = false;
      for (const Field& field : fields())
        for (const Alias& alias : field.about.aliases) sets = sets || alias.flag == name;
      const KnownFlag known = find_megatron_flag(name);
      EXPECT_EQ(sets, expected == Expected::Sets) << name;
      ASSERT_EQ(known.flag == nullptr, sets) << name;
      if (known.topic != nullptr) {
        EXPECT_EQ(known.topic->kind == FlagClass::Later, expected == Expected::Later) << name;
      }
    }
  }
}

TEST(MegatronFlags, QueryGroupsNeedTheirSwitch) {
  const auto kv_heads = [](const Args& args) {
    return load(small_model() + args).config.model.kv_heads;
  };
  EXPECT_EQ(kv_heads({"--group-query-attention", "--num-query-groups", "2"}), 2);
  EXPECT_EQ(kv_heads({"--num-query-groups", "2", "--group-query-attention"}), 2);
  EXPECT_EQ(kv_heads({"--group-query-attention"}), 1);
  EXPECT_EQ(kv_heads({"--num-query-groups", "2"}), 0);
  EXPECT_EQ(kv_heads({"--model.kv_heads", "2"}), 2);
  const Outcome ignored = outcome_of({"--num-query-groups", "2"});
  ASSERT_EQ(ignored.notes.size(), 1u);
  EXPECT_NE(ignored.notes[0].find("without --group-query-attention"), std::string::npos);
}

TEST(MegatronFlags, WindowsCountTheTokenItself) {
  const auto window = [](const char* text) {
    return load(small_model() + Args{"--window-size", text}).config.model.window;
  };
  EXPECT_EQ(window("127,0"), 128);
  EXPECT_EQ(window("(127, 0)"), 128);
  EXPECT_EQ(window("-1,0"), 0);
  EXPECT_EQ(window("0,-1"), 1);
  expect_problem(small_model() + Args{"--window-size", "127,5"}, {"--window-size", "127,5"});
  expect_problem(small_model() + Args{"--window-size", "wide"}, {"--window-size", "wide"});
}

// A script chooses the family, and the tokenizer and the mean of the loss unless the user names
// others.
TEST(MegatronFlags, TrainingScripts) {
  const auto config = [](const Args& args) { return load(args + small_model()).config; };
  EXPECT_EQ(config({"pretrain_bert.py"}).model.family, ModelFamily::Bert);
  EXPECT_EQ(config({"pretrain_bert.py"}).data.tokenizer, TokenizerKind::BertLower);
  EXPECT_EQ(config({"examples/bert/pretrain_bert.py"}).model.family, ModelFamily::Bert);
  EXPECT_EQ(config({"pretrain_gpt2.py"}).model.family, ModelFamily::Gpt);
  EXPECT_EQ(config({"pretrain_gpt.py"}).data.tokenizer, TokenizerKind::Gpt2);
  EXPECT_EQ(config({"pretrain_bert.py", "--tokenizer-type", "BertWordPieceCase"}).data.tokenizer,
            TokenizerKind::BertCased);
  EXPECT_EQ(config({}).data.tokenizer, TokenizerKind::None);
  EXPECT_EQ(config({"pretrain_bert.py"}).loss.average, LossAverage::MicroBatch);
  EXPECT_EQ(config({"--calculate-per-token-loss", "pretrain_bert.py"}).loss.average,
            LossAverage::Token);
  EXPECT_EQ(config({"pretrain_gpt.py"}).loss.average, LossAverage::Token);
  EXPECT_EQ(config({"--model.family", "bert"}).loss.average, LossAverage::Token);
  EXPECT_EQ(config({"pretrain_t5.py"}).model.family, ModelFamily::T5);
  EXPECT_EQ(config({"pretrain_t5.py"}).loss.average, LossAverage::MicroBatch);
  EXPECT_EQ(config({"pretrain_ict.py"}).model.family, ModelFamily::Biencoder);
  EXPECT_EQ(config({"pretrain_ict.py"}).data.tokenizer, TokenizerKind::BertLower);
  expect_problem(Args{"pretrain_vit.py"} + small_model(),
                 {"pretrain_vit.py does not work in this version", "pretrain_ict.py"});
  expect_problem(Args{"train.py"} + small_model(), {"train.py is no training script"});
  expect_problem(Args{"pretrain_gpt.py", "pretrain_bert.py"} + small_model(),
                 {"two training scripts"});
}

// Fails when the LM head of a BERT follows the layers, or --openai-gelu changes the layers only.
TEST(MegatronFlags, GeluOfTheLmHead) {
  const auto head = [](const Args& args) {
    return load(small_model() + args).config.model.head_activation;
  };
  const Args bert{"pretrain_bert.py"};
  EXPECT_EQ(head(bert), Activation::GeluErf);
  EXPECT_EQ(head(bert + Args{"--no-bias-gelu-fusion"}), Activation::GeluErf);
  EXPECT_EQ(head(bert + Args{"--openai-gelu"}), Activation::GeluTanh);
  EXPECT_EQ(head(bert + Args{"--openai-gelu", "--no-bias-gelu-fusion"}), Activation::GeluTanh);
  EXPECT_EQ(head(bert + Args{"--openai-gelu", "--model.head_activation", "gelu-erf"}),
            Activation::GeluErf);
  EXPECT_EQ(head({"--openai-gelu"}), Activation::GeluErf);  // a GPT
}

TEST(MegatronFlags, FlagsOfBert) {
  const Config c = load(Args{"pretrain_bert.py", "--mask-prob", "0.2", "--short-seq-prob", "0.05",
                             "--max-preds-per-seq", "20", "--bert-no-binary-head"} +
                        small_model())
                       .config;
  EXPECT_EQ(c.data.mask_prob, 0.2);
  EXPECT_EQ(c.data.short_seq_prob, 0.05);
  EXPECT_EQ(c.data.max_predictions, 20);
  EXPECT_FALSE(c.model.binary_head);
  EXPECT_FALSE(c.model.deep_init);
  EXPECT_TRUE(load(small_model() + Args{"--deep-init"}).config.model.deep_init);
  EXPECT_EQ(load(small_model() + Args{"--intermediate-size", "99"}).config.model.ffn, 99);
}

TEST(MegatronFlags, FlagsOfIct) {
  const Config c = load(Args{"pretrain_ict.py", "--biencoder-shared-query-context-model",
                             "--biencoder-projection-dim", "128", "--retriever-score-scaling",
                             "--bert-load", "bert", "--retriever-report-topk-accuracies", "1", "5",
                             "20", "--ict-head-size", "64", "--retriever-seq-length", "256"} +
                        small_model())
                       .config;
  EXPECT_TRUE(c.model.shared_towers);
  EXPECT_EQ(c.model.projection, 128);
  EXPECT_TRUE(c.model.scale_scores);
  EXPECT_EQ(c.checkpoint.bert, "bert");
  EXPECT_EQ(c.log.top_k, (TextList{"1", "5", "20"}));
  EXPECT_FALSE(load(Args{"pretrain_ict.py"} + small_model()).config.model.shared_towers);
}

TEST(MegatronFlags, TokenizersByTheirWords) {
  const std::pair<const char*, TokenizerKind> words[] = {
      {"SentencePieceTokenizer", TokenizerKind::SentencePiece},
      {"GPTSentencePieceTokenizer", TokenizerKind::GptSentencePiece},
      {"Llama2Tokenizer", TokenizerKind::Llama2},
      {"HuggingFaceTokenizer", TokenizerKind::HuggingFace},
      {"BertWordPieceLowerCase", TokenizerKind::BertLower},
      {"BertWordPieceCase", TokenizerKind::BertCased},
      {"TikTokenizer", TokenizerKind::External}};
  for (const auto& [word, kind] : words)
    EXPECT_EQ(load(small_model() + Args{"--tokenizer-type", word}).config.data.tokenizer, kind)
        << word;
}

TEST(MegatronFlags, PositionsAndPadding) {
  const auto model = [](const Args& args) { return load(small_model() + args).config.model; };
  EXPECT_EQ(model({"--no-position-embedding"}).position, PositionKind::None);
  EXPECT_EQ(model({"--no-position-embedding", "--use-rotary-position-embeddings"}).position,
            PositionKind::Rope);
  EXPECT_EQ(model({"--no-pad-vocab-size", "--make-vocab-size-divisible-by", "64"}).vocab_multiple,
            1);
  EXPECT_EQ(model({"--make-vocab-size-divisible-by", "64"}).vocab_multiple, 64);
  EXPECT_EQ(
      load(Args{"--encoder-num-layers", "3", "--hidden-size", "64", "--num-attention-heads", "4",
                "--vocab-size", "100", "--encoder-seq-length", "16", "--micro-batch-size", "2"})
          .config.model.layers,
      3);
}

}  // namespace
}  // namespace bev
