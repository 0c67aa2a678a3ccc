#include "infer/scorer.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/integer.h"

namespace bev {

namespace {

// Lengths of batches are multiples of it: a device that prepares itself for each length meets few.
constexpr int64_t kLengthStep = 16;

// Batches between two exchanges of scores, for each rank that shares the layers: they wait for each
// other only there.
constexpr int64_t kBatchesTogether = 4;

// Scores that ranks exchange at a time, two numbers each.
constexpr size_t kSharedScores = 4096;

// Where a vocabulary is made divisible by its padding, the last ranks have less of it.
void require_ids_on_every_rank(const Config& config) {
  const int64_t ranks = config.parallel.tensor, vocab = config.model.vocab;
  BEV_CHECK((ranks - 1) * div_ceil(vocab, ranks) < vocab, Usage,
            "a vocabulary of {} ids leaves none for the last of {} tensor ranks; legal are fewer",
            vocab, ranks);
}

ArenaSizes rehearse(const Config& config, int rank) {
  require_ids_on_every_rank(config);
  RehearsedModel rehearsed(config, rank);
  const BatchShape shape = resolve_batch(config);
  ScoringPass pass(rehearsed.model, shape.tokens_per_micro(), {});
  HostBatch batch;
  batch.resize(shape.micro_batch, shape.sequence, false);
  pass.run(batch);
  return pass.peaks();
}

}  // namespace

OrderedItems ordered_by_length(const std::vector<ScoringItem>& items) {
  std::vector<int64_t> numbers(items.size());
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto length = [&](int64_t number) { return items[static_cast<size_t>(number)].ids.size(); };
  // The longest first: what they need shows at once.
  std::stable_sort(numbers.begin(), numbers.end(),
                   [&](int64_t a, int64_t b) { return length(a) > length(b); });
  return {.items = {.count = static_cast<int64_t>(items.size()),
                    .read =
                        [&items, numbers](int64_t index) {
                          return items[static_cast<size_t>(numbers[static_cast<size_t>(index)])];
                        }},
          .numbers = numbers};
}

Scorer::Scorer(LoadedModel& model)
    : model_(model),
      sequences_(model.config().train.micro_batch),
      length_(model.config().train.sequence),
      pass_(model.placed(), sequences_ * length_, rehearse(model.config(), model.world().rank())),
      shared_(model.device(), kSharedScores * 2 * sizeof(double), "scores") {}

void Scorer::score(const ScoringItems& items, Sink sink, FunctionRef<void(int64_t done)> on_done) {
  const int64_t pipeline = model_.config().parallel.pipeline;
  const int64_t together = sequences_ * (pipeline == 1 ? 1 : kBatchesTogether * pipeline);
  std::vector<ScoringItem> group;
  for (int64_t begin = 0; begin < items.count; begin += together) {
    const int64_t end = std::min(begin + together, items.count);
    group.clear();
    for (int64_t i = begin; i < end; ++i) group.push_back(items.read(i));
    const std::vector<TokenScore> scores = score_together(group);
    std::span<const TokenScore> left = scores;
    for (int64_t i = begin; i < end; ++i) {
      const auto count = static_cast<size_t>(group[static_cast<size_t>(i - begin)].scored());
      sink(i, left.first(count));
      left = left.subspan(count);
    }
    on_done(end);
  }
}

std::vector<TokenScore> Scorer::score_together(std::span<const ScoringItem> items) {
  size_t count = 0;
  for (const ScoringItem& item : items) count += static_cast<size_t>(item.scored());
  std::vector<TokenScore> found;
  found.reserve(count);
  try {
    for (size_t begin = 0; begin < items.size(); begin += static_cast<size_t>(sequences_)) {
      const auto some =
          items.subspan(begin, std::min(static_cast<size_t>(sequences_), items.size() - begin));
      fill(some);
      const std::vector<TokenScore> scores = pass_.run(batch_);
      if (!pass_.has_head()) continue;
      for (size_t at = 0; at < some.size(); ++at) {
        const auto row = scores.begin() + static_cast<ptrdiff_t>(at) * batch_.length;
        found.insert(found.end(), row + (some[at].first - 1),
                     row + (static_cast<ptrdiff_t>(some[at].ids.size()) - 1));
      }
    }
    pass_.finish();
  } catch (const std::exception& error) {
    // Others may be reading what this rank has sent.
    model_.placed().groups.pipeline().abandon(error.what());
    throw;
  }
  share(found, count);
  return found;
}

void Scorer::fill(std::span<const ScoringItem> items) {
  int64_t longest = 1;
  for (const ScoringItem& item : items) {
    const auto size = static_cast<int64_t>(item.ids.size());
    BEV_CHECK(item.first >= 1 && item.first <= size && size <= length_ + 1, Internal,
              "an item of {} ids, scored from {} on, where {} tokens can be seen", size, item.first,
              length_);
    longest = std::max(longest, size - 1);
    for (const int32_t id : item.ids)
      BEV_CHECK(id >= 0 && id < model_.vocab(), Data,
                "the text has the id {}, but the vocabulary of the model has {} ids; its own "
                "tokenizer is needed",
                id, model_.vocab());
  }
  batch_.resize(static_cast<int64_t>(items.size()),
                std::min(length_, round_up(longest, kLengthStep)), false);
  std::fill(batch_.tokens.begin(), batch_.tokens.end(), 0);
  std::fill(batch_.targets.begin(), batch_.targets.end(), 0);
  for (size_t at = 0; at < items.size(); ++at) {
    batch_.start_sequence(static_cast<int64_t>(at), static_cast<int64_t>(at));
    const std::vector<int32_t>& ids = items[at].ids;
    const auto begin = static_cast<ptrdiff_t>(at) * batch_.length;
    std::copy(ids.begin(), ids.end() - 1, batch_.tokens.begin() + begin);
    std::copy(ids.begin() + 1, ids.end(), batch_.targets.begin() + begin);
  }
}

void Scorer::share(std::vector<TokenScore>& scores, size_t count) {
  Communicator& pipeline = model_.placed().groups.pipeline();
  if (pipeline.size() == 1) return;
  scores.resize(count);
  std::vector<double> numbers(kSharedScores * 2);
  for (size_t begin = 0; begin < count; begin += kSharedScores) {
    const size_t some = std::min(kSharedScores, count - begin);
    for (size_t i = 0; i < some; ++i) {
      numbers[2 * i] = scores[begin + i].loss;
      numbers[2 * i + 1] = scores[begin + i].is_likeliest ? 1 : 0;
    }
    const size_t bytes = 2 * some * sizeof(double);
    Exec ex = pass_.exec();
    model_.device().upload(numbers.data(), shared_.data(), bytes);
    pipeline.broadcast(ex,
                       tensor_over(shared_.data(), DType::f64, {2 * static_cast<int64_t>(some)}),
                       pipeline.size() - 1);
    model_.device().download(shared_.data(), numbers.data(), bytes);
    for (size_t i = 0; i < some; ++i)
      scores[begin + i] = {.loss = numbers[2 * i], .is_likeliest = numbers[2 * i + 1] > 0};
  }
}

}  // namespace bev
