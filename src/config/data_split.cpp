#include "config/data_split.h"

#include <charconv>
#include <cmath>

namespace bev {

namespace {

// To the nearest integer, halves to the even one.
int64_t rounded(double value) { return static_cast<int64_t>(std::nearbyint(value)); }

bool is_blank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

std::optional<SplitWeights> parse_split(std::string_view text) {
  const bool is_quoted = text.size() > 2 && (text.front() == '\'' || text.front() == '"') &&
                         text.front() == text.back();
  if (is_quoted) text = text.substr(1, text.size() - 2);
  SplitWeights weights{};
  double sum = 0;
  for (size_t part = 0;; ++part) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    double weight = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), weight);
    if (code != std::errc{} || !std::isfinite(weight) || weight < 0 || part >= weights.size())
      return std::nullopt;
    weights[part] = weight;
    sum += weight;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    if (text.empty()) break;
    if (text.front() != ',' && text.front() != '/') return std::nullopt;
    text.remove_prefix(1);
  }
  if (!(sum > 0) || !std::isfinite(sum)) return std::nullopt;
  return weights;
}

std::array<SequenceRange, 3> split_sequences(const SplitWeights& weights, int64_t sequences,
                                             Compat compat) {
  const double sum = weights[0] + weights[1] + weights[2];
  const auto count = static_cast<double>(sequences);
  std::array<int64_t, 4> bounds{};
  double running = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double part = weights[i] / sum;
    running += part;
    bounds[i + 1] =
        compat == Compat::Main ? rounded(running * count) : bounds[i] + rounded(part * count);
  }
  const int64_t excess = bounds[3] - sequences;
  std::array<SequenceRange, 3> ranges{};
  for (size_t i = 1; i < 4; ++i) {
    if (compat == Compat::Classic || i == 3) bounds[i] -= excess;
    bounds[i] = std::max(bounds[i], bounds[i - 1]);
    ranges[i - 1] = {bounds[i - 1], bounds[i]};
  }
  return ranges;
}

}  // namespace bev
