#include "app/embed/corpus_search.h"

#include <algorithm>

#include "app/cli/console.h"
#include "app/cli/progress_line.h"
#include "base/check.h"
#include "checkpoint/checksum.h"
#include "config/resolve.h"
#include "infer/embedding/corpus_embedding.h"

namespace bev::app {

bool check_search_flags(const FlagValues& flags) {
  if (!flags.has(kSearchFlag.name)) {
    for (const VerbFlag& flag :
         {kQuestionFlag, kQuestionsFlag, kTopFlag, kSimilarityFlag, kSearchJsonFlag})
      flags.require_with(flag.name, kSearchFlag.name);
    return false;
  }
  for (const std::string_view flag : {"--output", "--window", "--tower", "--data-parallel"})
    flags.require_not_both(flag, kSearchFlag.name);
  flags.require_not_both(kQuestionFlag.name, kQuestionsFlag.name);
  BEV_CHECK(flags.has(kQuestionFlag.name) || flags.has(kQuestionsFlag.name), Usage,
            "missing question: --search needs --prompt TEXT, or --sample-input-file FILE with a "
            "question in each line");
  BEV_CHECK(flags.text("--text") != "-", Usage,
            "--text - cannot be searched\nuse the file that was embedded");
  return true;
}

CorpusSearch::CorpusSearch(const FlagValues& flags, const EmbeddingModel& model,
                           const CorpusFormat& format)
    : model_(model),
      file_(flags.path(kSearchFlag.name)),
      prompt_(flags.text(kQuestionFlag.name)),
      questions_(flags.path(kQuestionsFlag.name)),
      source_(flags.path("--text")),
      format_(format),
      is_json_(flags.has(kSearchJsonFlag.name)) {
  search_.top = flags.integer(kTopFlag.name, search_.top, 1, 1 << 20);
  search_.similarity =
      static_cast<Similarity>(flags.choice(kSimilarityFlag.name, 0, kSimilarityNames));
  const std::string name = file_.path().string();
  const int64_t width = embedding_width(model.folder.config.model);
  BEV_CHECK(file_.width() == width, Usage,
            "{} has rows of {} numbers, but the embeddings of {} have {}\n"
            "use the model that wrote the file",
            name, file_.width(), model.folder.weights.string(), width);
  if (const std::optional<Json> found = read_embedding_description(file_.path()))
    require_same_description(
        *found,
        {{"model", checksum_text(model_checksum(model.folder))},
         {"pooling", kPoolingNames[static_cast<size_t>(model.rule.pooling)]},
         {"tower", kTowerNames[static_cast<size_t>(Tower::Context)]}},
        name,
        "search with the model and the --pooling that wrote the file; rows are embeddings "
        "of contexts (--tower)");
}

void CorpusSearch::check_corpus(const CorpusText& corpus) const {
  const std::optional<Json> found = read_embedding_description(file_.path());
  const bool is_same =
      corpus.count() == file_.rows() &&
      (!found || found->value("text", Json()) == Json(checksum_text(corpus.checksum())));
  BEV_CHECK(is_same, Data,
            "{} ({} texts) is not the text of {} ({} rows)\n"
            "use the file that was embedded, or leave out --text to print row numbers only",
            corpus.name(), corpus.count(), file_.path().string(), file_.rows());
}

std::vector<std::string> CorpusSearch::questions(const RankContext& place) const {
  if (questions_.empty()) return {prompt_};
  const RankInput input(questions_, place);
  const CorpusText lines(input.text(), input.name(), {});
  std::vector<std::string> questions;
  lines.read(0, lines.count(),
             [&](int64_t, std::string_view line) { questions.emplace_back(line); });
  return questions;
}

std::vector<std::vector<float>> CorpusSearch::embed_questions(
    const std::vector<std::string>& questions, const RankContext& place) const {
  LoadedModel model(model_.folder, model_.use, place.device, place.world);
  EncoderPass pass(model);
  BertText text(model_.folder);
  std::vector<EncoderInput> inputs;
  for (const std::string& question : questions)
    inputs.push_back(embedding_input(text, text.tokens(question), model_.use.length).input);
  return embed_texts(pass, inputs, {.pooling = model_.rule.pooling, .tower = Tower::Query});
}

void CorpusSearch::run(const RankContext& place) const {
  const std::vector<std::string> asked = questions(place);
  std::optional<RankInput> source;
  std::optional<CorpusText> corpus;
  if (!source_.empty() && place.is_first) {
    source.emplace(source_, place);
    corpus.emplace(source->text(), source->name(), format_);
    check_corpus(*corpus);
  }
  const std::vector<std::vector<float>> vectors = embed_questions(asked, place);
  if (!place.is_first) return;
  std::optional<ProgressLine> progress;
  progress.emplace("searching", file_.rows(), "rows");
  const auto matches = search_embeddings(place.device, file_, vectors, search_,
                                         [&](int64_t rows) { progress->update(rows); });
  progress.reset();
  for (size_t i = 0; i < asked.size(); ++i)
    print(asked[i], matches[i], corpus ? &*corpus : nullptr);
}

void CorpusSearch::print(const std::string& question, const std::vector<EmbeddingMatch>& matches,
                         const CorpusText* corpus) const {
  const size_t digits = std::to_string(file_.rows() - 1).size();
  Json rows = Json::array();
  std::string table = question + "\n";
  for (const EmbeddingMatch& match : matches) {
    Json row{{"row", match.row}, {"score", match.score}};
    table += format("{:12.6f}  {:>{}}", match.score, match.row, digits);
    if (corpus != nullptr) {
      std::string text = corpus->text(match.row);
      row["text"] = text;
      std::replace(text.begin(), text.end(), '\n', ' ');
      table += "  " + text;
    }
    table += '\n';
    rows.push_back(std::move(row));
  }
  fmt::print("{}", is_json_ ? json_text({{"prompt", question}, {"matches", rows}}) + "\n" : table);
}

}  // namespace bev::app
