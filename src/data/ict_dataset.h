// Samples of the inverse cloze task: a sentence and the block of sentences it was taken from.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/batch.h"
#include "data/sentence_runs.h"
#include "data/token_file.h"

namespace bev {

struct IctSamplesSpec {
  SentencePart part{};
  int64_t sequence = 0;           // tokens of query and context, at least kShortestIctSequence
  bool single_sentences = false;  // documents and blocks of one sentence too
  double query_in_block = 0.1;    // probability that the query stays in its block
  int64_t vocab = 0;              // ids of the files are below it
  int32_t classify = 0, separate = 0, pad = 0;
  // A document for each document of the file of sentences; null: blocks without titles.
  std::shared_ptr<const TokenFile> titles{};

  int64_t least_sentences() const { return single_sentences ? 1 : 2; }
  DocumentRule document_rule() const;
};

// [CLS] title [SEP] block [SEP] with a token of the block.
inline constexpr int64_t kShortestIctSequence = 4;
// A longer title is cut.
constexpr int64_t most_title_tokens(int64_t sequence) { return sequence - 3; }

// The texts of a sample, without padding.
struct IctTexts {
  std::vector<int32_t> query;    // [CLS] sentence [SEP]
  std::vector<int32_t> context;  // [CLS] title [SEP] block [SEP], or [CLS] block [SEP]
};

// Documents are divided into blocks that fill a sample together with their title. In Megatron-LM's
// order the blocks of all epochs are shuffled together, and the queries are drawn from Python's
// generator for sample 0, 1, 2, ... when the dataset is opened, as its loader draws them with one
// worker. There the titles of a split are counted from its first document, so that validation has
// titles of training documents. In the arithmetic order the blocks of one epoch are permuted in
// each, with their own titles, and the query is a function of the sample's number; the only
// sentence of a block stays in it.
class IctDataset final : public CountedDataset {
 public:
  // Sentences [begin, end) of one document, which has title number `title`.
  struct Block {
    int64_t begin, end;
    int64_t title, number;  // `number`: of the block, from 0 in each epoch
    bool operator==(const Block&) const = default;
  };
  struct Query {
    int64_t sentence = 0;  // of the file
    bool stays = false;    // in its block
  };

  // REQUIRES: a usable document. Blocks larger than memory should hold are a Data error.
  IctDataset(std::shared_ptr<const TokenFile> file, IctSamplesSpec spec);

  void read(int64_t index, HostBatch& batch, int64_t at) const override;
  std::string describe(int64_t index) const override;
  // The query, and a piece for each sentence of the block.
  SampleSource source(int64_t index) const override;

  // Valid until the next call on this thread.
  const IctTexts& texts(int64_t index) const;
  const Block& block(int64_t index) const { return blocks_[spec_.part.place(index, count())]; }
  Query query(int64_t index) const;
  // Arithmetic order: of one epoch.
  int64_t count() const override { return std::ssize(blocks_); }
  int64_t epoch_samples() const { return epoch_samples_; }

 private:
  // Tokens [begin, end) of the stream of a file.
  struct Range {
    int64_t begin = 0, end = 0;
    int64_t tokens() const { return end - begin; }
  };
  Range title_range(int64_t title) const;
  // Tokens of a block that fit a sample with this title.
  int64_t room(int64_t title) const;
  void add_epoch();
  void draw_queries();
  template <class Random>
  Query draw_query(const Block& block, Random& random) const;

  std::shared_ptr<const TokenFile> file_;  // shared by the samples of all splits
  IctSamplesSpec spec_;
  std::vector<Block> blocks_;
  std::vector<Query> queries_;  // Megatron's order, by sample
  int64_t epoch_samples_ = 0;
};

}  // namespace bev
