// Many texts at a time: requests come and go while a batch is generated, each gets its tokens as
// they are made. Knows no threads and no text.
//
// With several ranks, all of them submit and cancel the same in the same order.
#pragma once

#include <deque>
#include <list>
#include <string>

#include "infer/generation_request.h"
#include "infer/inference_engine.h"

namespace bev {

class ContinuousBatcher {
 public:
  // The decoder must outlive this.
  explicit ContinuousBatcher(InferenceEngine& decoder);

  // Why the request cannot be served by this decoder, in a sentence; empty: it can.
  std::string why_not(const GenerationRequest& request) const;

  // Of the cache, that its text takes.
  int64_t pages_of(const GenerationRequest& request) const;

  // Waits its turn: requests start in the order they came. The sink is called from step().
  // Returns its number. REQUIRES: why_not() is empty.
  int64_t submit(GenerationRequest request, TokenSink sink);
  // The sink is not called any more; what the text held becomes free for others. A number that is
  // not known is ignored: the text may just have ended. A sink may call it.
  void cancel(int64_t number);

  bool is_idle() const { return waiting_.empty() && running_.empty(); }
  size_t waiting() const { return waiting_.size(); }
  size_t running() const;
  int64_t free_pages() const { return std::ssize(free_pages_); }

  // Starts what has waited, or makes one more token of every text; calls sinks. REQUIRES:
  // !is_idle().
  void step();

 private:
  struct Text {
    int64_t number = 0;
    GenerationRequest request{};
    TokenSink sink{};
    std::vector<int32_t> tokens{}, pages{}, source_pages{};
    bool has_ended = false;  // what it holds is free when nothing is on its way any more

    int64_t generated() const { return std::ssize(tokens) - std::ssize(request.prompt); }
  };
  using Texts = std::list<Text>;

  std::string why_not_source(const GenerationRequest& request) const;
  int64_t source_pages_of(const GenerationRequest& request) const;
  std::vector<int32_t> take_pages(int64_t count);
  bool can_start(const GenerationRequest& request) const;
  // The texts that start next, moved to the end of running_; none where that is not possible.
  std::vector<Text*> take_waiting();
  void start(const std::vector<Text*>& texts);
  std::vector<ScoredToken> prompt_scores(const Text& text) const;
  void decode();
  bool may_go_further() const;
  void deliver();
  void remove_ended();
  EngineRow row_of(const Text& text, int64_t ahead) const;
  std::vector<EngineRow> rows_of(int64_t ahead) const;

  InferenceEngine& decoder_;
  std::vector<int32_t> free_pages_;
  std::deque<Text> waiting_;
  Texts running_;
  std::vector<Text*> rows_;  // of the steps that are on their way
  int on_their_way_ = 0;
  bool is_stepping_ = false;
  bool started_ = false;  // the step before started texts: those that run go on first
  int64_t next_number_ = 1;
};

// The likeliest of `logits`, with their log-probabilities, likeliest first; of equal ones the
// smaller id first.
std::vector<ScoredToken> likeliest(std::span<const float> logits, int64_t count);

}  // namespace bev
