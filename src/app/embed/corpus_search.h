// bevatron embed --search: the embedded texts that are most similar to questions.
#pragma once

#include <optional>
#include <string>

#include "app/embed/rank_input.h"
#include "infer/embedding/corpus_text.h"
#include "infer/embedding/embedding_search.h"
#include "infer/embedding/text_embedding.h"

namespace bev::app {

inline constexpr VerbFlag kSearchFlag{
    "--search", "FILE.npy", "find the rows of this file that are most similar to the questions"};
inline constexpr VerbFlag kQuestionFlag{"--prompt", "TEXT", "--search: a question"};
inline constexpr VerbFlag kQuestionsFlag{"--sample-input-file", "FILE",
                                         "--search: a question in each line ('-': stdin)"};
inline constexpr VerbFlag kTopFlag{"--top", "N", "--search: rows of each question [default: 5]"};
inline constexpr VerbFlag kSimilarityFlag{"--similarity", "NAME",
                                          "--search: dot (inner product) or cosine [default: dot]"};
inline constexpr VerbFlag kSearchJsonFlag{"--json", "",
                                          "--search: print a line of JSON for each question"};

// Whether this is a search. Usage error: a flag of a search without --search, or one that a search
// does not have. REQUIRES: the verb has all flags above.
bool check_search_flags(const FlagValues& flags);

// The model of the verb and how it embeds.
struct EmbeddingModel {
  ModelFolder folder;
  EmbeddingRule rule{};
  InferenceSetup use{};
};

class CorpusSearch {
 public:
  // Data error: the file cannot be searched. Usage error: another model or pooling wrote it.
  CorpusSearch(const FlagValues& flags, const EmbeddingModel& model, const CorpusFormat& format);

  // Collective; the first rank searches and prints.
  void run(const RankContext& place) const;

 private:
  // Data error: the texts are not those of the rows.
  void check_corpus(const CorpusText& corpus) const;
  std::vector<std::string> questions(const RankContext& place) const;
  std::vector<std::vector<float>> embed_questions(const std::vector<std::string>& questions,
                                                  const RankContext& place) const;
  // `corpus`: optional.
  void print(const std::string& question, const std::vector<EmbeddingMatch>& matches,
             const CorpusText* corpus) const;

  const EmbeddingModel& model_;
  EmbeddingFile file_;
  std::string prompt_, questions_, source_;
  CorpusFormat format_;
  EmbeddingSearch search_;
  bool is_json_;
};

}  // namespace bev::app
