// bevatron eval: what a trained model is worth, on a text or a task.
#include <array>
#include <cstdio>
#include <memory>
#include <optional>

#include "app/cli/console.h"
#include "app/cli/progress_line.h"
#include "app/cli/shared_flags.h"
#include "app/cli/verbs.h"
#include "app/eval/eval_report.h"
#include "app/launch/inference_ranks.h"
#include "base/check.h"
#include "base/file.h"
#include "base/integer.h"
#include "config/tokenizer_config.h"

namespace bev::app {

namespace {

constexpr std::array<VerbFlag, 23> kEvalFlags{{
    {"--task", "NAME",
     "perplexity: of any text or token file. wikitext: of a corpus whose words and marks stand "
     "apart, by its words, as Megatron-LM measures WikiText-103 and Penn Treebank. lambada: the "
     "last words of passages. choice: questions with several endings, as HellaSwag. "
     "masked-perplexity: of a BERT, whose only task it is. span-perplexity: the same for a T5. "
     "WIKITEXT103 and LAMBADA are understood too [default: perplexity; masked-perplexity of a "
     "BERT; "
     "span-perplexity of a T5]"},
    {"--text", "FILE",
     "a text, encoded with the tokenizer of the training; lambada: lines {\"text\": \"...\"}; "
     "choice: lines {\"ctx\": \"...\", \"endings\": [\"...\", ...], \"label\": 0}"},
    {"--valid-data", "FILE", "Megatron's name of --text"},
    {"--data", "PREFIX", "all perplexities: a token file (PREFIX.bin, PREFIX.idx)"},
    {"--documents", "NAME",
     "all perplexities: line, paragraph or file: what a document of --text is [default: line]"},
    {"--separate", "", "perplexity: documents do not see each other"},
    {"--scores", "FILE",
     "write the score of each document, passage, question or sample of a T5, a line of JSON each"},
    {"--length", "N", "tokens of one window [default: as trained, at most the model's positions]"},
    {"--overlap", "N",
     "perplexity: tokens at the start of a window that only give context [default: half a window]"},
    {"--overlapping-eval", "N",
     "wikitext: tokens from the start of one window to that of the next; at the end of a window, "
     "as many are scored [default: 32]"},
    {"--detokenizer", "NAME",
     "wikitext: auto, none, ptb, wikitext or lambada: by which rules the file becomes plain text; "
     "auto: by \"ptb\", \"wiki\" or \"lambada\" in its name [default: auto]"},
    {"--mask-every", "N",
     "masked-perplexity: every Nth token is masked, in N passes that mask each token once "
     "[default: 7]"},
    {"--seed", "N", "span-perplexity: decides which spans are masked [default: 1234]"},
    {"--strict-lambada", "", "lambada: the whole last word, not only its last token"},
    {"--batch", "N", "windows computed at a time [default: 8]"},
    kTensorFlag,
    kMegatronTensorFlag,
    kPipelineFlag,
    kMegatronPipelineFlag,
    kThreadsFlag,
    kDeviceFlag,
    kPrecisionFlag,
    {"--json", "", "print JSON with stable keys"},
}};

constexpr VerbSpec kEvalVerb{
    .name = "eval",
    .summary =
        "Scores a trained model on a text or a task. DIR is the folder of a `bevatron train`, one "
        "of its checkpoints or a Hugging Face model. Without --data and --text the validation part "
        "of the training data is scored. Docs: docs/evaluation.md.",
    .flags = kEvalFlags,
    .positional = "DIR",
    .min_positional = 1,
    .max_positional = 1};

enum class Task : uint8_t { Perplexity, Wikitext, Lambada, Choice, Masked, Spans };
constexpr size_t kTasks = 6;
// The last two are Megatron-LM's names.
constexpr std::array<std::string_view, kTasks + 2> kTaskNames{
    "perplexity",        "wikitext",        "lambada",     "choice",
    "masked-perplexity", "span-perplexity", "WIKITEXT103", "LAMBADA"};

// The model that a task is for.
ModelFamily family_of(Task task) {
  if (task == Task::Masked) return ModelFamily::Bert;
  return task == Task::Spans ? ModelFamily::T5 : ModelFamily::Gpt;
}

std::string_view name_of_family(ModelFamily family) {
  switch (family) {
    case ModelFamily::Bert: return "a BERT";
    case ModelFamily::T5: return "a T5";
    case ModelFamily::Biencoder: return "a bi-encoder";
    case ModelFamily::Gpt: break;
  }
  return "a causal language model";
}

Task task_of(const FlagValues& flags, const ModelFolder& folder) {
  const ModelFamily family = folder.config.model.family;
  BEV_CHECK(family != ModelFamily::Biencoder, Usage,
            "{} holds a bi-encoder, which no task is for; a bi-encoder has `bevatron embed`",
            folder.weights.string());
  const Task usual = folder.is_bert() ? Task::Masked
                     : folder.is_t5() ? Task::Spans
                                      : Task::Perplexity;
  const size_t choice = flags.choice("--task", static_cast<size_t>(usual), kTaskNames);
  const Task task = choice < kTasks    ? static_cast<Task>(choice)
                    : choice == kTasks ? Task::Wikitext
                                       : Task::Lambada;
  BEV_CHECK(family_of(task) == family, Usage, "--task {} needs {}, but {} holds {}; use {}",
            kTaskNames[choice], name_of_family(family_of(task)), folder.weights.string(),
            name_of_family(family),
            family == ModelFamily::Gpt
                ? "perplexity, wikitext, lambada, choice"
                : format("--task {}", kTaskNames[static_cast<size_t>(usual)]));
  return task;
}

// Flags that belong to one task mean nothing to another.
void require_flags_of(Task task, const FlagValues& flags) {
  constexpr std::pair<std::string_view, Task> kOwners[] = {{"--data", Task::Perplexity},
                                                           {"--documents", Task::Perplexity},
                                                           {"--separate", Task::Perplexity},
                                                           {"--overlap", Task::Perplexity},
                                                           {"--overlapping-eval", Task::Wikitext},
                                                           {"--detokenizer", Task::Wikitext},
                                                           {"--strict-lambada", Task::Lambada},
                                                           {"--mask-every", Task::Masked},
                                                           {"--seed", Task::Spans}};
  const auto is_shared = [&](std::string_view flag) {
    return (task == Task::Masked || task == Task::Spans) &&
           (flag == "--data" || flag == "--documents");
  };
  for (const auto& [flag, owner] : kOwners)
    BEV_CHECK(task == owner || is_shared(flag) || !flags.has(flag), Usage,
              "{} belongs to --task {}, and the task is {}", flag,
              kTaskNames[static_cast<size_t>(owner)], kTaskNames[static_cast<size_t>(task)]);
}

// What is evaluated, and on what.
class EvalRun {
 public:
  EvalRun(const FlagValues& flags, InferenceRanks& ranks)
      : flags_(flags),
        ranks_(ranks),
        folder_(open_model_folder(flags.positional().front())),
        tokenizer_(tokenizer_of(folder_.config)) {
    if (ranks.prints())
      for (const std::string& line : folder_.passed_over) print_stderr("note: {}\n", line);
    const int64_t trained =
        folder_.config.train.sequence > 0 ? folder_.config.train.sequence : 1024;
    length_ = flags.integer("--length", longest_sequence(folder_, trained), 1,
                            longest_sequence(folder_, 1 << 28));
    use_ = ranks.use_of(folder_, flags.integer("--batch", 8, 1, 65536), length_);
  }

  // Nothing where another process has the first rank.
  std::optional<EvalReport> run(Task task) {
    switch (task) {
      case Task::Wikitext: return wikitext();
      case Task::Lambada: return lambada();
      case Task::Choice: return choice();
      case Task::Masked: return masked();
      case Task::Spans: return spans();
      case Task::Perplexity: break;
    }
    return perplexity();
  }

  double seconds() const { return seconds_; }
  const ModelFolder& folder() const { return folder_; }

 private:
  std::string file_name() const {
    const std::string_view flag = flags_.has("--valid-data") ? "--valid-data" : "--text";
    BEV_CHECK(flags_.has(flag), Usage, "the task needs a file: --text FILE");
    return flags_.path(flag);
  }

  Tokenizer& tokenizer(const std::string& file) const {
    BEV_CHECK(tokenizer_ != nullptr, Usage, "--text {}: {}; --data PREFIX scores a token file",
              file, why_no_tokenizer(folder_));
    return *tokenizer_;
  }

  static std::string_view text_in(const MappedFile& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  }

  // What `work` makes of a scorer on the first rank, if that is here.
  template <class Work>
  auto scored(int64_t items, std::string_view unit, Work&& work) {
    using OnDone = FunctionRef<void(int64_t)>;
    std::optional<std::invoke_result_t<Work, Scorer&, OnDone>> result;
    ranks_.run(folder_, use_, [&](const RankContext& place) {
      LoadedModel model(folder_, use_, place.device, place.world);
      Scorer scorer(model);
      if (!place.is_first) {
        work(scorer, [](int64_t) {});
        return;
      }
      ProgressLine progress("scoring", items, unit);
      result = work(scorer, [&](int64_t done) { progress.update(done); });
      seconds_ = progress.seconds();
    });
    return result;
  }

  std::optional<EvalReport> score_windows(const EvalText& text, const PerplexityRule& rule,
                                          FunctionRef<EvalReport(const TextScore& score)> report) {
    const PerplexityWindows windows(text, rule);
    const auto result = scored(windows.count(), "windows", [&](Scorer& scorer, auto on_done) {
      return score_text(scorer, text, windows, on_done);
    });
    return result ? std::optional(report(*result)) : std::nullopt;
  }

  EvalText text_to_score() const {
    if (flags_.has("--data"))
      return eval_token_file(flags_.path("--data"), folder_.config, tokenizer_.get());
    if (!flags_.has("--text") && !flags_.has("--valid-data"))
      return eval_validation(folder_, tokenizer_.get());
    const std::string name = file_name();
    Tokenizer& encoder = tokenizer(name);
    const MappedFile file(name);
    const auto documents =
        static_cast<DocumentBreak>(flags_.choice("--documents", 0, kDocumentBreakNames));
    return eval_text_of(name, text_in(file), documents, encoder);
  }

  std::optional<EvalReport> perplexity() {
    const PerplexityRule rule{.length = length_,
                              .overlap = flags_.integer("--overlap", length_ / 2, 0, length_ - 1),
                              .before = static_cast<int32_t>(folder_.config.data.eod),
                              .separate = flags_.has("--separate")};
    const EvalText text = text_to_score();
    return score_windows(
        text, rule, [&](const TextScore& score) { return report_perplexity(text, rule, score); });
  }

  MaskedText masked_text(BertText& bert) const {
    if (flags_.has("--data"))
      return masked_text_of(eval_token_file(flags_.path("--data"), folder_.config, nullptr), bert);
    if (!flags_.has("--text") && !flags_.has("--valid-data"))
      return masked_text_of(eval_validation(folder_, nullptr), bert);
    const std::string name = file_name();
    const MappedFile file(name);
    const auto documents =
        static_cast<DocumentBreak>(flags_.choice("--documents", 0, kDocumentBreakNames));
    return masked_text_of(name, text_in(file), documents, bert);
  }

  std::optional<EvalReport> masked() {
    require_lm_head(folder_);
    BEV_CHECK(length_ > BertText::kAdded, Usage,
              "--length {}: [CLS] and [SEP] leave no token to predict; must be at least 3",
              length_);
    const MaskingRule rule{
        .length = length_,
        .every = flags_.integer("--mask-every", MaskingRule{}.every, 1, 1 << 20)};
    BertText bert(folder_);
    const MaskedText text = masked_text(bert);
    std::optional<TextScore> score;
    ranks_.run(folder_, use_, [&](const RankContext& place) {
      LoadedModel model(folder_, use_, place.device, place.world);
      EncoderPass pass(model);
      if (!place.is_first) {
        score_masked(pass, text, bert, rule);
        return;
      }
      ProgressLine progress("scoring", count_pieces(text, rule), "pieces");
      score = score_masked(pass, text, bert, rule, [&](int64_t done) { progress.update(done); });
      seconds_ = progress.seconds();
    });
    return score ? std::optional(report_masked(text, rule, *score)) : std::nullopt;
  }

  std::optional<EvalReport> spans() {
    constexpr int64_t kLeast = 3, kLengthStep = 16;
    BEV_CHECK(length_ >= kLeast, Usage,
              "--length {}: the encoder of a T5 has room for two more tokens than a text has; must "
              "be at least {}",
              length_, kLeast);
    BEV_CHECK(tokenizer_ != nullptr, Usage, "{}; a T5 needs the vocabulary of its training",
              why_no_tokenizer(folder_));
    const SpanVocabulary vocabulary = span_vocabulary(*tokenizer_, folder_.weights.string());
    BEV_CHECK(vocabulary.ids <= folder_.config.model.vocab, Data,
              "{}: the tokenizer has {} ids, but the model has {}; its own tokenizer is needed",
              folder_.weights.string(), vocabulary.ids, folder_.config.model.vocab);
    const int64_t most = longest_sequence(folder_, 1 << 28);
    const SpanRule rule{.length = length_,
                        .most_decoder_tokens = most,
                        .masked = folder_.config.data.mask_prob,
                        .seed = static_cast<uint64_t>(flags_.integer(
                            "--seed", static_cast<int64_t>(SpanRule{}.seed), 0, INT64_MAX))};
    const SpanText text = span_text_of(text_to_score(), vocabulary, rule);
    // No more padding than the longest sample needs.
    use_.length = std::min(most, round_up(text.longest_encoder(), kLengthStep));
    folder_.config.train.decoder_sequence =
        std::min(most, round_up(text.longest_decoder(), kLengthStep));
    folder_.config.loss = {};
    // Losses of single samples are those of batches of one.
    if (flags_.has("--scores")) use_.sequences = 1;
    std::optional<SpanScore> score;
    ranks_.run(folder_, use_, [&](const RankContext& place) {
      LoadedModel model(folder_, use_, place.device, place.world);
      if (!place.is_first) {
        score_spans(model, text, vocabulary.pad);
        return;
      }
      ProgressLine progress("scoring", std::ssize(text.samples), "samples");
      score =
          score_spans(model, text, vocabulary.pad, [&](int64_t done) { progress.update(done); });
      seconds_ = progress.seconds();
    });
    return score ? std::optional(report_spans(text, rule, *score)) : std::nullopt;
  }

  std::optional<EvalReport> wikitext() {
    constexpr int64_t kStride = 32;
    const int64_t stride =
        flags_.integer("--overlapping-eval", std::min(kStride, length_), 1, length_);
    const PerplexityRule rule{.length = length_, .overlap = length_ - stride};
    const std::string name = file_name();
    const MappedFile file(name);
    const WikitextCorpus corpus =
        wikitext_corpus(name, text_in(file), detokenizer(name), tokenizer(name));
    return score_windows(corpus.text, rule, [&](const TextScore& score) {
      return report_wikitext(corpus, rule, score);
    });
  }

  Detokenizer detokenizer(const std::string& file) const {
    std::array<std::string_view, std::size(kDetokenizerNames) + 1> names{"auto"};
    std::copy(std::begin(kDetokenizerNames), std::end(kDetokenizerNames), names.begin() + 1);
    const size_t choice = flags_.choice("--detokenizer", 0, names);
    return choice == 0 ? detokenizer_for(file) : static_cast<Detokenizer>(choice - 1);
  }

  std::optional<EvalReport> lambada() {
    const auto rule =
        flags_.has("--strict-lambada") ? LambadaRule::LastWord : LambadaRule::LastToken;
    const std::string name = file_name();
    const MappedFile file(name);
    const std::vector<ScoringItem> items =
        read_lambada(name, text_in(file), rule, length_, tokenizer(name));
    const auto result =
        scored(static_cast<int64_t>(items.size()), "passages",
               [&](Scorer& scorer, auto on_done) { return score_lambada(scorer, items, on_done); });
    return result ? std::optional(report_lambada(name, rule, *result)) : std::nullopt;
  }

  std::optional<EvalReport> choice() {
    const std::string name = file_name();
    const MappedFile file(name);
    const std::vector<ChoiceQuestion> questions = read_questions(name, text_in(file));
    const std::vector<ScoringItem> items = choice_items(
        name, questions, static_cast<int32_t>(folder_.config.data.eod), length_, tokenizer(name));
    const auto result =
        scored(static_cast<int64_t>(items.size()), "endings", [&](Scorer& scorer, auto on_done) {
          return score_choices(scorer, questions, items, on_done);
        });
    return result ? std::optional(report_choice(name, *result)) : std::nullopt;
  }

  const FlagValues& flags_;
  InferenceRanks& ranks_;
  ModelFolder folder_;
  std::unique_ptr<Tokenizer> tokenizer_;
  int64_t length_ = 0;
  InferenceSetup use_;
  double seconds_ = 0;
};

void evaluate(const FlagValues& flags, InferenceRanks& ranks) {
  flags.require_not_both("--data", "--text");
  flags.require_not_both("--data", "--valid-data");
  flags.require_not_both("--text", "--valid-data");
  const std::string scores = flags.path("--scores");
  EvalRun run(flags, ranks);
  const Task task = task_of(flags, run.folder());
  require_flags_of(task, flags);
  // What cannot be written is found before anything is computed.
  if (!scores.empty() && ranks.prints()) AtomicFile{scores};
  std::optional<EvalReport> report = run.run(task);
  if (!report) return;
  if (!scores.empty()) {
    AtomicFile file(scores);
    file.write(report->scores);
    file.commit();
  }
  report->json["seconds"] = run.seconds();
  fmt::print("{}", flags.has("--json") ? report->json.dump(2) + "\n" : report->words);
}

// Tasks of Megatron-LM's tasks/main.py that train a model further.
void refuse_fine_tuning(std::span<const std::string> args) {
  constexpr std::string_view kFineTuning[] = {
      "RACE", "MNLI", "QQP", "RET-FINETUNE-NQ", "ICT-ZEROSHOT-NQ", "RETRIEVER-EVAL"};
  const auto flag = std::ranges::find(args, "--task");
  const std::string task = flag == args.end() || flag + 1 == args.end() ? "" : *(flag + 1);
  BEV_CHECK(std::ranges::count(kFineTuning, task) == 0, Usage,
            "--task {} trains a model further on labelled data or retrieves from a corpus, which "
            "bevatron does not\nfine-tune it with transformers, which loads the folder model/ of a "
            "run and what `bevatron checkpoint export` writes",
            task);
}

}  // namespace

int eval(std::span<const std::string> args) {
  refuse_fine_tuning(args);
  return run_inference_verb(kEvalVerb, args, [](const FlagValues& flags, InferenceRanks& ranks) {
    evaluate(flags, ranks);
  });
}

}  // namespace bev::app
