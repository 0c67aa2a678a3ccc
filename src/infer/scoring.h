// The loss of a model on a stream of tokens, each token scored exactly once.
#pragma once

#include <functional>
#include <vector>

#include "data/batch.h"
#include "infer/loaded_model.h"

namespace bev {

// Tokens by their place; REQUIRES: begin + out.size() <= size.
struct TokenStream {
  int64_t size = 0;
  std::function<void(int64_t begin, std::span<int32_t> out)> read;
};
TokenStream stream_of(const std::vector<int32_t>& ids);

// Windows of `length` tokens; neighbours share `overlap` tokens, which the later one sees but does
// not score. The first token of all is scored from `before` (the end of another document), or, when
// that is negative, not at all.
class ScoringWindows final : public Samples {
 public:
  // REQUIRES: 0 <= overlap < length, at least one token can be scored.
  ScoringWindows(TokenStream stream, int64_t length, int64_t overlap, int32_t before);

  int64_t windows() const { return windows_; }
  int64_t scored() const { return inputs_; }  // tokens

  void read(int64_t index, HostBatch& batch, int64_t at) const override;
  std::string describe(int64_t index) const override;

 private:
  TokenStream stream_;
  int64_t length_, overlap_;
  int32_t before_;
  int64_t inputs_, windows_;
};

// The sum of nats over all tokens of the windows. `on_window` hears how many windows are done.
double score(LoadedModel& model, const ScoringWindows& windows,
             const std::function<void(int64_t done)>& on_window);

}  // namespace bev
