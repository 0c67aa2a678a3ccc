#include "infer/generation.h"

#include <algorithm>

namespace bev {

namespace {

// The last `context` tokens of the prompt and each continuation. Ended ones keep their last tokens:
// nobody reads what would follow them.
void fill(HostBatch& batch, std::span<const int32_t> prompt,
          std::span<const Continuation> continuations, int64_t written, int64_t context) {
  const int64_t all = static_cast<int64_t>(prompt.size()) + written;
  const int64_t length = std::min(all, context);
  batch.resize(static_cast<int64_t>(continuations.size()), length, false);
  for (int64_t row = 0; row < batch.sequences; ++row) {
    const std::vector<int32_t>& ids = continuations[static_cast<size_t>(row)].ids;
    for (int64_t i = 0; i < length; ++i) {
      const auto slot = static_cast<size_t>(row * length + i);
      const auto place = static_cast<size_t>(all - length + i);
      const size_t inside = place - std::min(place, prompt.size());
      batch.tokens[slot] = place < prompt.size() ? prompt[place]
                           : inside < ids.size() ? ids[inside]
                                                 : prompt.front();
      batch.targets[slot] = 0;
      batch.positions[slot] = static_cast<int32_t>(i);
      batch.weight[slot] = 0;
      batch.rows[slot] = static_cast<int64_t>(slot);
    }
  }
}

}  // namespace

std::vector<Continuation> generate(
    LoadedModel& model, std::span<const int32_t> prompt, const GenerationOptions& options,
    const std::function<bool(std::span<const Continuation>)>& on_step) {
  std::vector<Continuation> continuations(static_cast<size_t>(options.samples));
  Sampler sampler(options.sampling);
  HostBatch batch;
  const auto vocab = static_cast<size_t>(model.vocab());
  for (int64_t written = 0; written < options.tokens; ++written) {
    fill(batch, prompt, continuations, written, options.context);
    const std::span<const float> logits = model.next_logits(batch);
    bool going = false;
    for (size_t row = 0; row < continuations.size(); ++row) {
      Continuation& c = continuations[row];
      if (c.ended) continue;
      const int32_t id =
          sampler.choose(logits.subspan(row * vocab, vocab), static_cast<int64_t>(row), written);
      if (id == options.end) {
        c.ended = true;
      } else {
        c.ids.push_back(id);
        going = true;
      }
    }
    if (!on_step(continuations) || !going) break;
  }
  return continuations;
}

}  // namespace bev
