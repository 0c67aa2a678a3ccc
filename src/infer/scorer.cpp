#include "infer/scorer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/integer.h"
#include "ops/cross_entropy.h"

namespace bev {

namespace {

// Lengths of batches are multiples of it: a device that prepares itself for each length meets few.
constexpr int64_t kLengthStep = 16;

// Batches between two exchanges of scores, for each rank that shares the layers: they wait for each
// other only there.
constexpr int64_t kBatchesTogether = 4;

// Scores that ranks exchange at a time, two numbers each.
constexpr size_t kSharedScores = 4096;

ArenaSizes scoring_memory(const Config& config, int rank) {
  require_ids_on_every_rank(config);
  DryRunModel dry_run(config, rank);
  const BatchShape shape = resolve_batch(config);
  ScoringPass pass(dry_run.model, shape.tokens_per_micro(), {});
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
      pass_(model.placed(), sequences_ * length_,
            scoring_memory(model.config(), model.world().rank())),
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
    model_.placed().groups.over({Axis::Pipeline}).abort(error.what());
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
  Communicator& pipeline = model_.placed().groups.over({Axis::Pipeline});
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

namespace {

template <class T>
std::vector<double> downloaded(Device& device, const Tensor& t) {
  std::vector<T> values(static_cast<size_t>(t.shape.elements()));
  device.download(t.data, values.data(), values.size() * sizeof(T));
  return {values.begin(), values.end()};
}

}  // namespace

ScoringPass::ScoringPass(RankModel& model, int64_t tokens, const ArenaSizes& sizes)
    : model_(model),
      pipeline_(model.groups.over({Axis::Pipeline})),
      before_(pipeline_.rank() - 1),
      next_(pipeline_.rank() + 1 < pipeline_.size() ? pipeline_.rank() + 1 : -1),
      feed_(model.device, sizes.batch, 1),
      keep_(model.device, sizes.keep, "activations"),
      scratch_(model.device, sizes.scratch, "scratch"),
      recompute_(model.device, sizes.recompute, "recomputation"),
      stage_(model, model.env.borders.attention) {
  if (has_head()) return;
  for (Outgoing& each : outgoing_)
    each.hidden =
        keep_.allocate({tokens, model.shape.width}, model.params.dtype(), "scoring.output");
}

Exec ScoringPass::exec() {
  return {model_.device, model_.device.compute_stream(), keep_, scratch_, recompute_};
}

std::vector<TokenScore> ScoringPass::run(const HostBatch& batch) {
  const TextView micro = feed_.upload(batch, 0)[0];
  const ArenaScope scope(keep_);
  Exec ex = exec();
  const int64_t tokens = micro.tokens_count();
  const DType dtype = model_.params.dtype();
  Tensor input, output, stats;
  if (before_ >= 0) {
    input = keep_.allocate({tokens, model_.shape.width}, dtype, "scoring.input");
    pipeline_.recv(ex, input, before_, Channel::Forward);
  }
  Outgoing& outgoing = outgoing_[turn_];
  if (has_head()) {
    stats = keep_.allocate({tokens, ops::kSoftmaxStats}, accumulation_of(dtype), "scoring.stats");
  } else {
    turn_ = 1 - turn_;
    pipeline_.wait_send(ex, outgoing.sent);
    output = slice(outgoing.hidden, 0, 0, tokens);
  }
  stage_.forward(ex, micro, input, output, {.token_stats = stats});
  if (has_head()) return scores_of(stats);
  outgoing.sent = pipeline_.send(ex, output, next_, Channel::Forward);
  return {};
}

void ScoringPass::finish() {
  Exec ex = exec();
  for (Outgoing& each : outgoing_) {
    pipeline_.wait_send(ex, each.sent);
    each.sent = {};
  }
}

std::vector<TokenScore> ScoringPass::scores_of(const Tensor& stats) {
  const std::vector<double> values = stats.dtype == DType::f64
                                         ? downloaded<double>(model_.device, stats)
                                         : downloaded<float>(model_.device, stats);
  std::vector<TokenScore> scores(static_cast<size_t>(stats.rows()));
  for (size_t i = 0; i < scores.size(); ++i) {
    const double* of = values.data() + i * ops::kSoftmaxStats;
    scores[i] = {.loss = of[ops::kStatMax] - of[ops::kStatTarget] + std::log(of[ops::kStatSumExp]),
                 .is_likeliest = of[ops::kStatTarget] >= of[ops::kStatMax]};
  }
  return scores;
}

ArenaSizes ScoringPass::peaks() const {
  return {.keep = keep_.peak(),
          .batch = feed_.peak(),
          .scratch = scratch_.peak(),
          .recompute = recompute_.peak()};
}

TokenStream stream_of(const std::vector<int32_t>& ids) {
  return {.size = static_cast<int64_t>(ids.size()),
          .read = [&ids](int64_t begin, std::span<int32_t> out) {
            std::copy_n(ids.begin() + begin, out.size(), out.begin());
          }};
}

TokenStream part_of(const TokenStream& stream, int64_t begin, int64_t size) {
  return {.size = size, .read = [read = stream.read, begin](int64_t at, std::span<int32_t> out) {
            read(begin + at, out);
          }};
}

TokenStream joined(TokenStream first, TokenStream second) {
  const int64_t size = first.size + second.size;
  return {.size = size,
          .read = [first = std::move(first), second = std::move(second)](int64_t at,
                                                                         std::span<int32_t> out) {
            const auto here = static_cast<size_t>(
                std::clamp<int64_t>(first.size - at, 0, static_cast<int64_t>(out.size())));
            if (here > 0) first.read(at, out.first(here));
            if (here < out.size())
              second.read(std::max<int64_t>(0, at - first.size), out.subspan(here));
          }};
}

// Target i is token i of the stream with `before` in front of it, and token i + 1 without.
ScoringWindows::ScoringWindows(TokenStream stream, int64_t length, int64_t overlap, int32_t before)
    : stream_(std::move(stream)),
      length_(length),
      overlap_(overlap),
      before_(before),
      shift_(before < 0 ? 1 : 0),
      windows_(1) {
  BEV_CHECK(scored() >= 1, Data, "there are too few tokens to score: {}", stream_.size);
  BEV_CHECK(overlap >= 0 && overlap < length, Internal, "windows of {} overlap by {}", length,
            overlap);
  if (scored() > length) windows_ += div_ceil(scored() - length, length - overlap);
}

ScoringItem ScoringWindows::item(int64_t window) const {
  const int64_t targets = std::min(length_, scored() - begin(window));
  // The first id is the one before the first target.
  const int64_t place = begin(window) + shift_ - 1;
  const int64_t missing = place < 0 ? 1 : 0;
  ScoringItem item{.ids = std::vector<int32_t>(static_cast<size_t>(targets) + 1, before_),
                   .first = window == 0 ? 1 : overlap_ + 1};
  stream_.read(place + missing, std::span(item.ids).subspan(static_cast<size_t>(missing)));
  return item;
}

int64_t ScoringWindows::first_place(int64_t window) const {
  return begin(window) + shift_ + (window == 0 ? 0 : overlap_);
}

}  // namespace bev
