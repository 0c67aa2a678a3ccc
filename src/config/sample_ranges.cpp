#include "config/sample_ranges.h"

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "base/number_list.h"
#include "config/parse/notation.h"

namespace bev {

namespace {

// Sums of such numbers are far from the end of their type.
constexpr int64_t kMostSamples = int64_t{1} << 60;

std::optional<int64_t> sample_number(std::string_view text) {
  return parse_number<int64_t>(text, 0, kMostSamples - 1);
}

}  // namespace

SampleRanges::SampleRanges(const std::vector<SampleRange>& ranges) {
  for (const SampleRange& range : ranges) add(range);
}

void SampleRanges::add(SampleRange range) {
  if (range.end <= range.begin) return;
  const auto first = std::find_if(ranges_.begin(), ranges_.end(),
                                  [&](const SampleRange& r) { return r.end >= range.begin; });
  auto last = first;
  for (; last != ranges_.end() && last->begin <= range.end; ++last) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
  }
  ranges_.insert(ranges_.erase(first, last), range);
}

void SampleRanges::add(const SampleRanges& others) {
  for (const SampleRange& range : others.ranges_) add(range);
}

int64_t SampleRanges::count() const {
  int64_t sum = 0;
  for (const SampleRange& range : ranges_) sum += range.end - range.begin;
  return sum;
}

int64_t SampleRanges::next_outside(int64_t position) const {
  for (const SampleRange& range : ranges_)
    if (range.begin <= position && position < range.end) return range.end;
  return position;
}

int64_t SampleRanges::outside(int64_t position, int64_t n) const {
  int64_t at = next_outside(position);
  for (const SampleRange& range : ranges_) {
    if (range.end <= at) continue;
    if (at + n < range.begin) break;
    n -= range.begin - at;
    at = range.end;
  }
  return at + n;
}

std::string SampleRanges::text() const {
  std::string text;
  for (const SampleRange& range : ranges_) {
    text += format("{}{}", text.empty() ? "" : ",", range.begin);
    if (range.end > range.begin + 1) text += format("-{}", range.end - 1);
  }
  return text;
}

ParsedRanges parse_sample_ranges(std::string_view text) {
  ParsedRanges parsed;
  if (without_blanks(text).empty()) return parsed;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = without_blanks(text.substr(begin, end - begin));
    const size_t dash = part.find('-');
    const auto first = sample_number(without_blanks(part.substr(0, dash)));
    const auto last = dash == std::string_view::npos
                          ? first
                          : sample_number(without_blanks(part.substr(dash + 1)));
    if (!first || !last) {
      parsed.why = format("\"{}\" is not a range of samples", part.substr(0, 60));
      return parsed;
    }
    if (*last < *first) {
      parsed.why = format("\"{}\" ends before it begins", part);
      return parsed;
    }
    parsed.ranges.add({*first, *last + 1});
    begin = end + 1;
  }
  return parsed;
}

}  // namespace bev
