// A model that continues many sequences, token by token, with the keys and values of what came
// before in a cache. Rows of a batch are numbered; what a row holds is up to the caller.
//
// With an encoder-decoder, prefill() runs the encoder over the source of each row; the keys and
// values of cross attention have pages of the same cache. The sequence is the decoder's text, which
// begins with the start token.
//
// With several ranks, all of them call the same functions with the same arguments; or one of them
// leads, and the others follow.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "infer/generation_request.h"
#include "infer/loaded_model.h"

namespace bev {

// What memory is planned for.
struct EngineLimits {
  int64_t rows = 1;            // sequences at a time
  int64_t length = 0;          // tokens of one sequence, prompt included
  int64_t source = 0;          // tokens of one source; 0: the model has no encoder
  int64_t pages = 0;           // of the cache; 0: so that every row can have `length` tokens and a
                               // source
  int64_t page = 64;           // tokens of a page
  int64_t prefill_tokens = 0;  // of one batch, at least prompt(); 0: rows x prompt(), at most 8192

  // Tokens of one row that prefill() computes, at most.
  int64_t prompt() const { return source > 0 ? source : length; }
};

// The state of one row before a step.
struct EngineRow {
  std::span<const int32_t> tokens{};  // that the sequence has so far
  std::span<const int32_t> pages{};   // of the cache, for one token more than those in front of it
  SamplingOptions choice{};           // with top_p as it is now
  int64_t key = 0;                    // of the draws
  // Only with an encoder-decoder. The decoder sees all tokens of the source; the encoder only the
  // first `source_length` of them, and the rest are padding.
  std::span<const int32_t> source{};
  int64_t source_length = 0;
  std::span<const int32_t> source_pages{};  // no two rows have the last one in common
};

struct SampledToken {
  int32_t id = -1;
  double logprob = 0;
};

class EngineCalls;

class InferenceEngine {
 public:
  // Usage error if an encoder-decoder runs on several pipeline ranks.
  InferenceEngine(LoadedModel& model, const EngineLimits& limits);
  ~InferenceEngine();
  InferenceEngine(const InferenceEngine&) = delete;
  InferenceEngine& operator=(const InferenceEngine&) = delete;

  const EngineLimits& limits() const;
  int64_t vocab() const;
  // True if one batch can hold this number of prompts (sources of an encoder-decoder), if the
  // longest one has `longest` tokens.
  bool fits(int64_t prompts, int64_t longest) const;

  // Computes prompts from their first token on, writes them to the cache and chooses the next
  // token of each. A row of an encoder-decoder has one token. REQUIRES: fits().
  void prefill(std::span<const EngineRow> rows);
  // The log-probabilities of the prompts' tokens from the second on, of all rows one after the
  // other; nothing is written to the cache and nothing chosen. REQUIRES: fits(), no step in flight,
  // no encoder-decoder.
  std::vector<double> score(std::span<const EngineRow> rows);

  // Chooses one more token behind the last of each row, which is not in the cache yet.
  void decode(std::span<const EngineRow> rows);
  // The same for the tokens that the step before chose, whether the host knows them already or not:
  // the rows are those of that step, with `pages` for one token more; `tokens` lacks the newest.
  void decode_ahead(std::span<const EngineRow> rows);

  // Waits for the oldest step that has not been collected; its rows in their order. At most two may
  // be on their way.
  std::span<const SampledToken> collect();
  // The logits of the step that was collected last, [rows, vocab]. REQUIRES: nothing on its way.
  std::vector<float> logits();

  // The page's keys and values are written to another page.
  void copy_page(int32_t from, int32_t to);

  // From now on every call of this rank, the first of the world, is passed on to the others, which
  // follow() meanwhile; they are dismissed when this is destroyed.
  void lead_ranks();
  void follow_leader();
  // So that those who follow do not give up while there is nothing to do; to be called more often
  // than ranks wait for each other.
  void ping_followers();

  size_t cache_bytes() const;
  // Steps that were launched as CUDA graphs.
  int64_t graph_launches() const;

  class EngineRunner;

 private:
  std::unique_ptr<EngineRunner> runner_;
  LoadedModel& model_;
  std::unique_ptr<EngineCalls> calls_;  // where this rank leads
};

}  // namespace bev
