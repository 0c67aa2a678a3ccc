#include "ops/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ops/op_table.h"
#include "ops/reference/element.h"

namespace bev::reference {

namespace {

struct Candidate {
  double logit, weight;
  int32_t id;
};

struct Options {
  double temperature, top_k, top_p, min_p, penalty;
};

Options options_of(const ConstTensor& options, int64_t row) {
  const auto column = [&](ops::SamplingColumn c) {
    return at(options, row, static_cast<int64_t>(c));
  };
  return {column(ops::SamplingColumn::Temperature), column(ops::SamplingColumn::TopK),
          column(ops::SamplingColumn::TopP), column(ops::SamplingColumn::MinP),
          column(ops::SamplingColumn::RepetitionPenalty)};
}

// Leaves those that may be drawn. REQUIRES: the candidates are in likeliest order.
void keep_likely(const Options& o, std::vector<Candidate>& candidates) {
  if (o.top_k > 0 && o.top_k < static_cast<double>(candidates.size()))
    candidates.resize(static_cast<size_t>(o.top_k));
  double sum = 0;
  for (Candidate& c : candidates)
    sum += c.weight = std::exp((c.logit - candidates.front().logit) / o.temperature);
  if (o.top_p < 1) {
    double kept = 0;
    size_t count = 0;
    while (count < candidates.size() && (count == 0 || kept < o.top_p * sum))
      kept += candidates[count++].weight;
    candidates.resize(count);
  }
  std::erase_if(candidates, [&](const Candidate& c) { return c.weight < o.min_p; });
}

int32_t drawn_of(std::vector<Candidate>& candidates, double draw) {
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  double sum = 0;
  for (const Candidate& c : candidates) sum += c.weight;
  double so_far = 0;
  for (const Candidate& c : candidates) {
    so_far += c.weight;
    if (so_far > draw * sum) return c.id;
  }
  return candidates.back().id;
}

double log_sum_exp(const ConstTensor& logits, int64_t row, int64_t classes) {
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t id = 0; id < classes; ++id) max = std::max(max, at(logits, row, id));
  for (int64_t id = 0; id < classes; ++id) sum += std::exp(at(logits, row, id) - max);
  return max + std::log(sum);
}

}  // namespace

void sample_tokens(Exec&, const ops::SampleTokens& c) {
  require_f64("sample_tokens", c.logits.dtype);
  for (int64_t row = 0; row < c.logits.rows(); ++row) {
    const Options options = options_of(c.options, row);
    std::vector<Candidate> candidates;
    for (int64_t id = 0; id < c.classes; ++id) {
      double logit = at(c.logits, row, id);
      if (c.seen.present() && (element<int32_t>(c.seen, row, id / 32) >> (id % 32) & 1) != 0)
        logit = ops::penalised(logit, options.penalty);
      if (std::isfinite(logit)) candidates.push_back({logit, 0, static_cast<int32_t>(id)});
    }
    if (candidates.empty()) {
      element<int32_t>(c.ids, row) = -1;
      at(c.logprobs, row) = std::numeric_limits<double>::quiet_NaN();
      continue;
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
    });
    int32_t id = candidates.front().id;
    if (options.temperature > 0) {
      keep_likely(options, candidates);
      id = drawn_of(candidates, ops::choice_draw(element<int64_t>(c.keys, row, int64_t{0}),
                                                 element<int64_t>(c.keys, row, int64_t{1})));
    }
    element<int32_t>(c.ids, row) = id;
    at(c.logprobs, row) = at(c.logits, row, id) - log_sum_exp(c.logits, row, c.classes);
    if (c.seen.present()) {
      int32_t& word = element<int32_t>(c.seen, row, id / 32);
      word = static_cast<int32_t>(static_cast<uint32_t>(word) | uint32_t{1} << (id % 32));
    }
  }
}

}  // namespace bev::reference
