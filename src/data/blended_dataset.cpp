#include "data/blended_dataset.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

#include "base/check.h"
#include "base/format.h"

namespace bev {

void BlendedDataset::read(int64_t index, HostBatch& batch, int64_t at) const {
  const BlendSchedule::Place place = rule_(index);
  parts_[place.dataset]->read(place.sample, batch, at);
  batch.number_rows(at, index);  // samples of two parts may have the same number
}

std::string BlendedDataset::describe(int64_t index) const {
  const BlendSchedule::Place place = rule_(index);
  return format("sample {} of the blend is {}", index,
                parts_[place.dataset]->describe(place.sample));
}

SampleSource BlendedDataset::source(int64_t index) const {
  const BlendSchedule::Place place = rule_(index);
  return parts_[place.dataset]->source(place.sample);
}

namespace {

// The weights times `scale` when all of those are whole, else nothing.
std::vector<int64_t> exact_weights(std::span<const double> weights, double scale) {
  std::vector<int64_t> whole;
  for (const double weight : weights) {
    const double scaled = weight * scale, rounded = std::round(scaled);
    constexpr double kMost = 1e15, kRelativeError = 1e-12;
    if (rounded < 1 || rounded > kMost) return {};
    if (std::abs(scaled - rounded) > kRelativeError * rounded) return {};
    whole.push_back(static_cast<int64_t>(rounded));
  }
  return whole;
}

void reduce(std::vector<int64_t>& weights) {
  int64_t divisor = 0;
  for (const int64_t weight : weights) divisor = std::gcd(divisor, weight);
  for (int64_t& weight : weights) weight /= divisor;
}

// Parts of `limit`: the whole ones first, then one more for the largest remainders.
std::vector<int64_t> rounded_weights(std::span<const double> weights, int64_t limit) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> whole;
  std::vector<std::pair<double, size_t>> remainders;
  int64_t left = limit;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double share = weights[i] / sum * static_cast<double>(limit);
    whole.push_back(std::max<int64_t>(1, static_cast<int64_t>(share)));
    remainders.emplace_back(share - static_cast<double>(whole.back()), i);
    left -= whole.back();
  }
  std::sort(remainders.begin(), remainders.end(), std::greater<>());
  for (size_t i = 0; left > 0; ++i, --left) ++whole[remainders[i % remainders.size()].second];
  // Only where many tiny weights were rounded up to 1.
  for (; left < 0; ++left) --*std::max_element(whole.begin(), whole.end());
  return whole;
}

// Tijdeman's rule in whole numbers. Sample j of a dataset with `weight` places of `period` may
// stand at place t (from 1) once t * weight - j * period >= period / (2m - 2), and of those that
// may, the one goes first that would be late first.
class TableMaker {
 public:
  struct Turn {
    size_t dataset;
    int64_t sample;
  };

  explicit TableMaker(const std::vector<int64_t>& weights)
      : weights_(weights),
        period_(std::accumulate(weights.begin(), weights.end(), int64_t{0})),
        slack_(2 * static_cast<int64_t>(weights.size()) - 2),
        released_(static_cast<size_t>(period_) + 1) {
    for (size_t i = 0; i < weights.size(); ++i) release({i, 0});
  }

  template <class F>
  void for_each_place(F f) {
    const auto later = [this](const Turn& a, const Turn& b) { return is_later(a, b); };
    std::priority_queue<Turn, std::vector<Turn>, decltype(later)> ready(later);
    for (int64_t place = 1; place <= period_; ++place) {
      for (const Turn& turn : released_[static_cast<size_t>(place)]) ready.push(turn);
      BEV_CHECK(!ready.empty(), Internal, "place {} of a blend has nobody", place);
      const Turn turn = ready.top();
      ready.pop();
      f(turn);
      release({turn.dataset, turn.sample + 1}, place + 1);
    }
  }

 private:
  void release(Turn turn, int64_t not_before = 1) {
    const int64_t weight = weights_[turn.dataset];
    if (turn.sample == weight) return;
    const __int128 numerator = static_cast<__int128>(period_) * (turn.sample * slack_ + 1);
    const __int128 denominator = static_cast<__int128>(weight) * slack_;
    const auto first = static_cast<int64_t>((numerator + denominator - 1) / denominator);
    released_[static_cast<size_t>(std::max(first, not_before))].push_back(turn);
  }

  // (j + 1 - 1/(2m - 2)) / weight: the time at which the error would become too large.
  bool is_later(const Turn& a, const Turn& b) const {
    const auto due = [this](const Turn& t) {
      return static_cast<__int128>((t.sample + 1) * slack_ - 1);
    };
    const __int128 left = due(a) * weights_[b.dataset], right = due(b) * weights_[a.dataset];
    return left != right ? left > right : a.dataset > b.dataset;
  }

  const std::vector<int64_t>& weights_;
  int64_t period_, slack_;
  std::vector<std::vector<Turn>> released_;
};

}  // namespace

std::vector<int64_t> whole_weights(std::span<const double> weights, int64_t limit) {
  BEV_CHECK(!weights.empty() && static_cast<int64_t>(weights.size()) <= limit, Internal,
            "a blend of {} datasets", weights.size());
  for (double scale = 1; scale <= 1e6; scale *= 10) {
    std::vector<int64_t> whole = exact_weights(weights, scale);
    if (whole.empty()) continue;
    reduce(whole);
    double sum = 0;
    for (const int64_t weight : whole) sum += static_cast<double>(weight);
    if (sum <= static_cast<double>(limit)) return whole;
    break;
  }
  std::vector<int64_t> whole = rounded_weights(weights, limit);
  reduce(whole);
  return whole;
}

BlendSchedule::BlendSchedule(std::span<const double> weights)
    : weights_(whole_weights(weights, kLongestPeriod)), places_(weights.size()) {
  const auto add = [&](size_t dataset, int64_t sample) {
    places_[dataset].push_back(static_cast<uint32_t>(table_.size()));
    table_.push_back({static_cast<uint32_t>(dataset), static_cast<uint32_t>(sample)});
  };
  if (weights_.size() == 1) {
    add(0, 0);
  } else {
    TableMaker(weights_).for_each_place(
        [&](const TableMaker::Turn& turn) { add(turn.dataset, turn.sample); });
  }
}

BlendSchedule::Place BlendSchedule::at(int64_t index) const {
  const int64_t round = index / period();
  const Slot slot = table_[static_cast<size_t>(index % period())];
  return {slot.dataset, round * weights_[slot.dataset] + slot.sample};
}

int64_t BlendSchedule::place_of(size_t dataset, int64_t sample) const {
  const int64_t weight = weights_[dataset];
  return sample / weight * period() + places_[dataset][static_cast<size_t>(sample % weight)];
}

}  // namespace bev
