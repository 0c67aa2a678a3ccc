// bevatron embed: a vector for each text by a BERT, and the search among such vectors.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/console.h"
#include "app/cli/progress_line.h"
#include "app/cli/shared_flags.h"
#include "app/cli/verbs.h"
#include "app/embed/corpus_search.h"
#include "app/embed/embedding_files.h"
#include "app/embed/rank_input.h"
#include "base/check.h"
#include "infer/embedding/corpus_embedding.h"

namespace bev::app {

namespace {

constexpr std::array kEmbedFlags{
    VerbFlag{"--text", "FILE",
             "a text in each line ('-': stdin), or jsonl; with --search: what was embedded, so "
             "that the texts found can be printed"},
    VerbFlag{"--input-format", "NAME", "text or jsonl [default: by the name of the file]"},
    VerbFlag{"--json-keys", "KEY", "jsonl: the key of the text [default: text]"},
    VerbFlag{"--output", "FILE",
             "FILE.npy: an array [texts, width] of float32, of any size; a run that was "
             "interrupted continues. FILE.safetensors: the tensor \"embeddings\". Any other name: "
             "lines of JSON [default: those, on stdout]"},
    VerbFlag{"--pooling", "NAME",
             "mean: over all tokens of a text, [CLS] and [SEP] included; cls: the state of [CLS] "
             "[default: mean]"},
    VerbFlag{"--tower", "NAME",
             "a bi-encoder: query or context, the encoder of the texts; --search embeds its "
             "questions as queries [default: context]"},
    VerbFlag{"--length", "N",
             "tokens of a text at most, [CLS] and [SEP] included; what is beyond is left out and "
             "counted [default: the model's positions]"},
    VerbFlag{"--batch", "N", "sequences of a batch [default: 32]"},
    VerbFlag{"--window", "N",
             "FILE.npy: texts that are sorted by length and saved together [default: 1024]"},
    kSearchFlag,
    kQuestionFlag,
    kQuestionsFlag,
    kTopFlag,
    kSimilarityFlag,
    kSearchJsonFlag,
    kTensorFlag,
    kPipelineFlag,
    kMegatronTensorFlag,
    kMegatronPipelineFlag,
    kDataFlag,
    kThreadsFlag,
    kDeviceFlag,
    kPrecisionFlag,
};

constexpr VerbSpec kEmbedVerb{
    .name = "embed",
    .summary =
        "Writes an embedding of each text: the last hidden states of a BERT, pooled to one vector "
        "by a mean or by [CLS], or what a bi-encoder makes of it. With --search, finds the "
        "embedded texts that are most similar to a "
        "question. DIR is the folder of a `bevatron train`, one of its checkpoints "
        "or a Hugging Face model; a BertModel without heads suffices. docs/generation.md has "
        "examples.",
    .flags = kEmbedFlags,
    .positional = "DIR",
    .min_positional = 1,
    .max_positional = 1};

CorpusFormat corpus_format(const FlagValues& flags) {
  constexpr std::array<std::string_view, 2> kFormats{"text", "jsonl"};
  const std::string path = flags.path("--text");
  const bool is_jsonl_name = path.ends_with(".jsonl") || path.ends_with(".json");
  CorpusFormat format{.is_jsonl =
                          flags.choice("--input-format", is_jsonl_name ? 1 : 0, kFormats) == 1};
  BEV_CHECK(format.is_jsonl || !flags.has("--json-keys"), Usage,
            "--json-keys is for jsonl, and {} is plain text\nadd --input-format jsonl", path);
  format.key = flags.text("--json-keys", format.key);
  return format;
}

void note_cuts(int64_t cut_texts, int64_t texts, int64_t cut_tokens, int64_t length) {
  if (cut_texts > 0)
    print_stderr(
        "note: {} of {} lines are longer than {} tokens: the {} tokens beyond are left out\n",
        with_commas(cut_texts), with_commas(texts), length, with_commas(cut_tokens));
}

// What the flags ask for, except for a search.
class EmbedRun {
 public:
  EmbedRun(const FlagValues& flags, const EmbeddingModel& model)
      : model_(model), source_(flags.path("--text")), format_(corpus_format(flags)) {
    work_ = {.output = flags.path("--output"),
             .rule = model.rule,
             .length = model.use.length,
             .window = flags.integer("--window", CorpusEmbedding{}.window, 1, 1 << 20)};
    const bool is_array = work_.output.extension() == ".npy";
    const ParallelConfig& parallel = model.use.parallel;
    const int64_t copies = parallel.ranks / (parallel.tensor * parallel.pipeline);
    BEV_CHECK(is_array || copies == 1, Usage,
              "{} copies of the model can only write a NumPy array\nuse --output FILE.npy", copies);
    BEV_CHECK(is_array || !flags.has("--window"), Usage,
              "--window is for the NumPy array of a corpus\nuse --output FILE.npy");
  }

  void run(const RankContext& place) const {
    const RankInput input(source_, place);
    const CorpusText corpus(input.text(), input.name(), format_);
    LoadedModel model(model_.folder, model_.use, place.device, place.world);
    if (work_.output.extension() == ".npy") return write_array(model, corpus, place.is_first);
    write_texts(model, corpus, place.is_first);
  }

 private:
  void write_array(LoadedModel& model, const CorpusText& corpus, bool is_first) const {
    std::optional<ProgressLine> progress;
    int64_t kept = 0;
    const CorpusProgress result =
        embed_corpus(model, model_.folder, corpus, work_, [&](int64_t rows) {
          if (!is_first) return;
          if (progress) return progress->update(rows - kept);
          kept = rows;
          progress.emplace("embedding", corpus.count() - kept, "texts");
          if (kept > 0)
            print_stderr("note: {} of {} texts were embedded by an earlier run\n",
                         with_commas(kept), with_commas(corpus.count()));
        });
    progress.reset();
    if (is_first) note_cuts(result.cut_texts, corpus.count(), result.cut_tokens, work_.length);
  }

  void write_texts(LoadedModel& model, const CorpusText& corpus, bool is_first) const {
    BertText text(model_.folder);
    std::vector<EncoderInput> inputs;
    std::vector<int64_t> cut;  // tokens left out of each
    int64_t cut_texts = 0, cut_tokens = 0;
    corpus.read(0, corpus.count(), [&](int64_t, std::string_view line) {
      EmbeddingInput input = embedding_input(text, text.tokens(line), work_.length);
      inputs.push_back(std::move(input.input));
      cut.push_back(input.cut);
      cut_texts += input.cut > 0 ? 1 : 0;
      cut_tokens += input.cut;
    });
    if (is_first) note_cuts(cut_texts, corpus.count(), cut_tokens, work_.length);
    EncoderPass pass(model);
    std::optional<ProgressLine> progress;
    if (is_first) progress.emplace("embedding", corpus.count(), "texts");
    const std::vector<std::vector<float>> vectors =
        embed_texts(pass, inputs, work_.rule, [&](int64_t done) {
          if (progress) progress->update(done);
        });
    progress.reset();
    if (!is_first) return;
    if (work_.output.extension() == ".safetensors")
      return write_embedding_tensor(work_.output, vectors);
    ResultFile results(work_.output.string());
    corpus.read(0, corpus.count(), [&](int64_t i, std::string_view line) {
      const auto at = static_cast<size_t>(i);
      results.write(embedding_line(line, std::ssize(inputs[at].ids), cut[at], vectors[at]));
    });
  }

  const EmbeddingModel& model_;
  std::string source_;
  CorpusFormat format_;
  CorpusEmbedding work_;
};

EmbeddingModel embedding_model(const FlagValues& flags, const InferenceRanks& ranks) {
  EmbeddingModel model{.folder = open_model_folder(flags.positional().front())};
  if (ranks.prints())
    for (const std::string& line : model.folder.passed_over) print_stderr("note: {}\n", line);
  const bool is_biencoder = model.folder.is_biencoder();
  BEV_CHECK(model.folder.is_bert() || is_biencoder, Usage,
            "{} holds {}; embeddings need a BERT or a bi-encoder", model.folder.weights.string(),
            model.folder.is_t5()
                ? "a T5"
                : "a causal language model, whose states see only what is before them");
  BEV_CHECK(is_biencoder || !flags.has("--tower"), Usage,
            "--tower: {} holds a BERT, which has one encoder for all texts\nleave out --tower",
            model.folder.weights.string());
  BEV_CHECK(!is_biencoder || !flags.has("--pooling"), Usage,
            "--pooling: {} holds a bi-encoder, whose embeddings are those of [CLS]\nleave out "
            "--pooling",
            model.folder.weights.string());
  model.rule.pooling =
      static_cast<Pooling>(flags.choice("--pooling", is_biencoder ? 1 : 0, kPoolingNames));
  model.rule.tower = static_cast<Tower>(flags.choice("--tower", 0, kTowerNames));
  const int64_t most = longest_sequence(model.folder, 1 << 28);
  const int64_t length = flags.integer("--length", most, BertText::kAdded, most);
  model.use = ranks.use_of(model.folder, flags.integer("--batch", 32, 1, 65536), length);
  const BertText checked(model.folder);
  return model;
}

}  // namespace

int embed(std::span<const std::string> args) {
  return run_inference_verb(kEmbedVerb, args, [](const FlagValues& flags, InferenceRanks& ranks) {
    const bool is_search = check_search_flags(flags);
    BEV_CHECK(is_search || flags.has("--text"), Usage,
              "missing --text: nothing to embed; use --text FILE, or --text - for stdin");
    const EmbeddingModel model = embedding_model(flags, ranks);
    if (is_search) {
      const CorpusSearch search(flags, model, corpus_format(flags));
      ranks.run(model.folder, model.use, [&](const RankContext& place) { search.run(place); });
    } else {
      const EmbedRun run(flags, model);
      ranks.run(model.folder, model.use, [&](const RankContext& place) { run.run(place); });
    }
  });
}

}  // namespace bev::app
