// Samples of the families that read sentences: BERT, T5 and bi-encoders.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "data/batch.h"
#include "data/sentence_runs.h"
#include "data/token_file.h"

namespace bev {

// What a family asks of files of sentences, and its samples of them.
class SentenceSamples {
 public:
  virtual ~SentenceSamples() = default;

  // "BERT".
  virtual std::string_view name() const = 0;
  // Which documents have samples.
  virtual DocumentRule document_rule() const = 0;
  // Tokens of a sentence that fit a sample.
  virtual int64_t room() const = 0;
  // What allows documents of a single sentence: ", or train without pairs (...)".
  virtual std::string_view way_for_single_sentences() const { return ""; }
  // Checks a file with the others of the run. `notes` gets a line for each thing to know.
  virtual void check(const TokenFile& /*file*/, std::vector<std::string>& /*notes*/) {}

  struct Opened {
    std::shared_ptr<const CountedDataset> samples;
    int64_t epoch_samples = 0;
    std::vector<std::string> notes{};
  };
  // REQUIRES: a usable document.
  virtual Opened open(const std::shared_ptr<const TokenFile>& file,
                      const SentencePart& part) const = 0;
};

// Null for families that read tokens of any kind. A tokenizer or a file of titles that does not fit
// is a Data error. `vocab`: ids of the model.
std::unique_ptr<SentenceSamples> sentence_samples(const Config& config, int64_t vocab);

}  // namespace bev
