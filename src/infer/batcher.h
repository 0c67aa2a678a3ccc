// Many texts at a time: requests come and go while a batch is generated, each gets its tokens as
// they are made. Knows no threads and no text.
#pragma once

#include <deque>
#include <list>
#include <memory>

#include "infer/decoder.h"
#include "infer/request.h"

namespace bev {

class Batcher {
 public:
  // The decoder must outlive this.
  explicit Batcher(Decoder& decoder) : decoder_(decoder) {}

  // Why the request cannot be served by this decoder, in a sentence; empty: it can.
  std::string why_not(const GenerationRequest& request) const;

  // Waits its turn: requests start in the order they came. The sink is called from step().
  // Returns its number. REQUIRES: why_not() is empty.
  int64_t submit(GenerationRequest request, TokenSink sink);
  // The sink is not called any more; what the text held is free for others. Unknown numbers are
  // ignored: the text may just have ended.
  void cancel(int64_t number);

  bool is_idle() const { return waiting_.empty() && running_.empty() && !is_ahead_; }
  size_t waiting() const { return waiting_.size(); }
  size_t running() const { return running_.size(); }

  // Starts what has waited, or makes one more token of every text; calls sinks. REQUIRES:
  // !is_idle().
  void step();

 private:
  struct Text;
  void start_waiting();
  void collect();
  void finish(std::list<Text>::iterator text, Finish why);
  void issue();

  Decoder& decoder_;
  std::deque<Text> waiting_;
  std::list<Text> running_;
  bool is_ahead_ = false;
  int64_t next_number_ = 1;
};

}  // namespace bev
