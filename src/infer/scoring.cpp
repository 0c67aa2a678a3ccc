#include "infer/scoring.h"

#include <algorithm>

#include "base/check.h"
#include "base/integer.h"
#include "train/evaluation.h"

namespace bev {

TokenStream stream_of(const std::vector<int32_t>& ids) {
  return {.size = static_cast<int64_t>(ids.size()),
          .read = [&ids](int64_t begin, std::span<int32_t> out) {
            std::copy_n(ids.begin() + begin, out.size(), out.begin());
          }};
}

// Input i of the stream is followed by target i: with `before` in front, input 0 is `before` and
// target i is token i; without it, input i is token i and target i is token i + 1.
ScoringWindows::ScoringWindows(TokenStream stream, int64_t length, int64_t overlap, int32_t before)
    : stream_(std::move(stream)),
      length_(length),
      overlap_(overlap),
      before_(before),
      inputs_(stream_.size - (before < 0 ? 1 : 0)),
      windows_(1) {
  BEV_CHECK(inputs_ >= 1, Data, "there are too few tokens to score: {}", stream_.size);
  BEV_CHECK(overlap >= 0 && overlap < length, Internal, "windows of {} overlap by {}", length,
            overlap);
  if (inputs_ > length) windows_ += div_ceil(inputs_ - length, length - overlap);
}

void ScoringWindows::read(int64_t index, HostBatch& batch, int64_t at) const {
  const int64_t begin = index * (length_ - overlap_);
  const int64_t count = std::min(length_, inputs_ - begin);
  const auto first = static_cast<size_t>(at * batch.length);
  const auto part = static_cast<size_t>(count);
  const std::span<int32_t> tokens(batch.tokens.data() + first, static_cast<size_t>(batch.length));
  const std::span<int32_t> targets(batch.targets.data() + first, tokens.size());
  std::fill(tokens.begin(), tokens.end(), 0);
  std::fill(targets.begin(), targets.end(), 0);
  stream_.read(before_ < 0 ? begin + 1 : begin, targets.first(part));
  if (before_ < 0 || begin > 0) {
    stream_.read(before_ < 0 ? begin : begin - 1, tokens.first(part));
  } else {
    tokens[0] = before_;
    std::copy_n(targets.begin(), part - 1, tokens.begin() + 1);
  }
  for (int64_t i = 0; i < batch.length; ++i) {
    const size_t slot = first + static_cast<size_t>(i);
    batch.positions[slot] = static_cast<int32_t>(i);
    batch.weight[slot] = i < count && (index == 0 || i >= overlap_) ? 1.0f : 0.0f;
    batch.rows[slot] = index * batch.length + i;
  }
}

std::string ScoringWindows::describe(int64_t index) const {
  return format("window {} of {}", index, windows_);
}

double score(LoadedModel& model, const ScoringWindows& windows,
             const std::function<void(int64_t done)>& on_window) {
  const BatchShape shape = resolve_batch(model.config());
  Evaluation evaluation(model.executor(), shape, false);
  LossSum total;
  for (int64_t done = 0; done < windows.windows();) {
    const int64_t count = std::min(shape.global_batch, windows.windows() - done);
    const LossSum sum = evaluation.run(windows, done, count);
    total.loss += sum.loss;
    total.weight += sum.weight;
    done += count;
    on_window(done);
  }
  BEV_CHECK(static_cast<int64_t>(total.weight) == windows.scored(), Internal,
            "{} of {} tokens were scored", total.weight, windows.scored());
  return total.loss;
}

}  // namespace bev
