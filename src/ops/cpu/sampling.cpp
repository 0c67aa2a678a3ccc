#include "ops/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "base/integer.h"
#include "ops/cpu/kernels/kernels.h"
#include "ops/cpu/parallel_loops.h"
#include "ops/op_table.h"
#include "tensor/dtype_dispatch.h"

namespace bev::cpu {

namespace {

// Ids whose weights are summed together; a multiple of the bits of a word of `seen`.
constexpr int64_t kSamplingBlock = 1024;
constexpr float kNever = -std::numeric_limits<float>::infinity();

struct Options {
  double temperature, top_k, top_p, min_p, penalty;

  explicit Options(const double* row)
      : temperature(of(row, ops::SamplingColumn::Temperature)),
        top_k(of(row, ops::SamplingColumn::TopK)),
        top_p(of(row, ops::SamplingColumn::TopP)),
        min_p(of(row, ops::SamplingColumn::MinP)),
        penalty(of(row, ops::SamplingColumn::RepetitionPenalty)) {}

  static double of(const double* row, ops::SamplingColumn column) {
    return row[static_cast<size_t>(column)];
  }
};

struct Candidate {
  float logit, weight;
  int32_t id;
};

bool is_likelier(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// The least likely one that is kept when all are.
constexpr Candidate kAllKept{kNever, 0, std::numeric_limits<int32_t>::max()};

// The k-th likeliest, or kAllKept when fewer than k have a chance. REQUIRES: k > 0.
Candidate last_of_top(std::span<const float> logits, size_t k) {
  std::vector<Candidate> best;
  const auto keep_best = [&] {
    const auto last = best.begin() + static_cast<std::ptrdiff_t>(k) - 1;
    std::nth_element(best.begin(), last, best.end(), is_likelier);
    best.resize(k);
  };
  // Of equal logits a later id is less likely, so those that equal the k-th need not be looked at.
  float floor = kNever;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (!(logits[id] > floor)) continue;
    best.push_back({logits[id], 0, static_cast<int32_t>(id)});
    if (best.size() < 2 * k) continue;
    keep_best();
    floor = best.back().logit;
  }
  if (best.size() < k) return kAllKept;
  keep_best();
  return best.back();
}

// The last of the shortest run of likeliest candidates whose sum of weights is at least `wanted`.
// REQUIRES: there is a candidate. Halves what is left to sort, so the time is linear.
Candidate last_of_run(std::vector<Candidate>& candidates, double wanted) {
  auto begin = candidates.begin(), end = candidates.end();
  double before = 0;  // the weight of all candidates likelier than *begin
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end, is_likelier);
    double sum = before;
    for (auto c = begin; c != middle; ++c) sum += static_cast<double>(c->weight);
    if (sum >= wanted) {
      end = middle;
    } else {
      before = sum;
      begin = middle;
    }
  }
  return *begin;
}

// One row in the memory of one thread: [classes] logits and as many weights.
class Choice {
 public:
  Choice(std::byte* memory, int64_t classes)
      : logits_(reinterpret_cast<float*>(memory), static_cast<size_t>(classes)),
        weights_(reinterpret_cast<float*>(memory) + classes, static_cast<size_t>(classes)),
        sums_(static_cast<size_t>(div_ceil(classes, kSamplingBlock))) {}

  static size_t bytes(int64_t classes) { return 2 * static_cast<size_t>(classes) * sizeof(float); }

  // seen may be null.
  template <class T>
  int32_t id_of(const T* logits, const int32_t* seen, const Options& o, double draw) {
    load(logits, seen, o.penalty);
    if (max_ == kNever) return -1;
    if (!(o.temperature > 0)) return static_cast<int32_t>(likeliest_);
    // Below this all but the likeliest weigh nothing anyway.
    temperature_ = std::max(static_cast<float>(o.temperature), 1e-30f);
    Candidate last = kAllKept;
    if (o.top_k > 0 && o.top_k < static_cast<double>(logits_.size()))
      last = last_of_top(logits_, static_cast<size_t>(o.top_k));
    if (o.top_p < 1) last = last_of_nucleus(last, o.top_p);
    return drawn(draw * weigh(last, o.min_p));
  }

 private:
  template <class T>
  void load(const T* logits, const int32_t* seen, double penalty) {
    max_ = kNever;
    each_block([&](int64_t begin, int64_t count) {
      float* block = logits_.data() + begin;
      kernels_of<T>().finite_logits(logits + begin, block, count);
      if (seen != nullptr && penalty != 1) penalise(seen + begin / 32, block, count, penalty);
      const float largest = kernels().largest_of(block, count);
      if (largest > max_) {
        max_ = largest;
        likeliest_ = std::find(block, block + count, largest) - logits_.data();
      }
    });
  }

  static void penalise(const int32_t* seen, float* logits, int64_t count, double penalty) {
    for (int64_t word = 0; word * 32 < count; ++word) {
      for (auto bits = static_cast<uint32_t>(seen[word]); bits != 0; bits &= bits - 1) {
        float& logit = logits[word * 32 + __builtin_ctz(bits)];
        logit = static_cast<float>(ops::penalised(static_cast<double>(logit), penalty));
        if (!std::isfinite(logit)) logit = kNever;
      }
    }
  }

  // Fills weights_ and sums_ for those that are not less likely than `last` and weigh at least
  // `least`. Returns the sum of all.
  double weigh(const Candidate& last, double least) {
    double total = 0;
    each_block([&](int64_t begin, int64_t count) {
      double sum = kernels().choice_weights({.logits = logits_.data() + begin,
                                             .weights = weights_.data() + begin,
                                             .count = count,
                                             .max = max_,
                                             .temperature = temperature_,
                                             .lowest = last.logit,
                                             .least = static_cast<float>(least)});
      if (last.logit != kNever && begin + count > last.id) sum = without_ties(last, begin, count);
      sums_[static_cast<size_t>(begin / kSamplingBlock)] = sum;
      total += sum;
    });
    return total;
  }

  // Those as likely as `last` but with larger ids are not kept either.
  double without_ties(const Candidate& last, int64_t begin, int64_t count) {
    double sum = 0;
    for (int64_t id = begin; id < begin + count; ++id) {
      float& weight = weights_[static_cast<size_t>(id)];
      if (id > last.id && logits_[static_cast<size_t>(id)] == last.logit) weight = 0;
      sum += static_cast<double>(weight);
    }
    return sum;
  }

  Candidate last_of_nucleus(const Candidate& last, double top_p) {
    const double sum = weigh(last, 0);
    // All that weigh less than this together weigh less than what may be left out.
    const double least = 0.999 * (1 - top_p) * sum / static_cast<double>(logits_.size());
    std::vector<Candidate> candidates;
    for (size_t id = 0; id < logits_.size(); ++id) {
      if (weights_[id] > 0 && static_cast<double>(weights_[id]) >= least)
        candidates.push_back({logits_[id], weights_[id], static_cast<int32_t>(id)});
    }
    return last_of_run(candidates, top_p * sum);
  }

  // The first id up to which the weights exceed `wanted`; the last with a weight where rounding
  // leaves none.
  int32_t drawn(double wanted) const {
    size_t block = 0;
    double before = 0, through = 0;  // what weighs before the block, and up to its end
    for (size_t next = 0; next < sums_.size() && through <= wanted; ++next) {
      if (sums_[next] <= 0) continue;
      block = next;
      before = through;
      through += sums_[next];
    }
    const size_t begin = block * static_cast<size_t>(kSamplingBlock);
    const size_t end = std::min(weights_.size(), begin + static_cast<size_t>(kSamplingBlock));
    size_t chosen = begin;
    for (size_t id = begin; id < end && before <= wanted; ++id) {
      if (weights_[id] <= 0) continue;
      chosen = id;
      before += static_cast<double>(weights_[id]);
    }
    return static_cast<int32_t>(chosen);
  }

  template <class Body>
  void each_block(const Body& body) const {
    const auto classes = static_cast<int64_t>(logits_.size());
    for (int64_t begin = 0; begin < classes; begin += kSamplingBlock)
      body(begin, std::min(kSamplingBlock, classes - begin));
  }

  std::span<float> logits_, weights_;
  std::vector<double> sums_;  // of the weights of each block
  float max_ = kNever, temperature_ = 1;
  int64_t likeliest_ = 0;
};

}  // namespace

void sample_tokens(Exec& ex, const ops::SampleTokens& c) {
  HostDevice& host = host_of(ex);
  BEV_CHECK(Choice::bytes(c.classes) <= host.workspace_bytes(), Usage,
            "sample_tokens: the cpu device chooses among up to {} classes, not {}",
            host.workspace_bytes() / Choice::bytes(1), c.classes);
  visit_cpu(c.logits.dtype, "sample_tokens", [&]<class T>() {
    const int64_t words = div_ceil(c.classes, 32);
    host.threads().each(c.logits.rows(), [&](int64_t row, int thread) {
      const T* logits = reinterpret_cast<const T*>(c.logits.data) + row * c.logits.shape[1];
      const auto* key = reinterpret_cast<const int64_t*>(c.keys.data) + 2 * row;
      const Options options(reinterpret_cast<const double*>(c.options.data) +
                            row * ops::kChoiceColumns);
      int32_t* seen =
          c.seen.present() ? reinterpret_cast<int32_t*>(c.seen.data) + row * words : nullptr;
      Choice choice(host.workspace(thread), c.classes);
      const int32_t id = choice.id_of(logits, seen, options, ops::choice_draw(key[0], key[1]));
      float& logprob = reinterpret_cast<float*>(c.logprobs.data)[row];
      reinterpret_cast<int32_t*>(c.ids.data)[row] = id;
      logprob = std::numeric_limits<float>::quiet_NaN();
      if (id < 0) return;
      const SoftmaxSums sums = kernels_of<T>().softmax_sums(logits, c.classes);
      logprob = static_cast<float>(static_cast<double>(logits[id]) - static_cast<double>(sums.max) -
                                   std::log(sums.sum_exp));
      if (seen != nullptr) {
        int32_t& word = seen[id / 32];
        word = static_cast<int32_t>(static_cast<uint32_t>(word) | uint32_t{1} << (id % 32));
      }
    });
  });
}

}  // namespace bev::cpu
