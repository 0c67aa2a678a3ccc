// Samples of the training data that are left out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bev {

// Samples [begin, end) of the training data.
struct SampleRange {
  int64_t begin = 0, end = 0;
  bool operator==(const SampleRange&) const = default;
};

// A set of samples, as ranges in order that neither overlap nor touch.
class SampleRanges {
 public:
  SampleRanges() = default;
  explicit SampleRanges(const std::vector<SampleRange>& ranges);

  void add(SampleRange range);
  void add(const SampleRanges& others);
  const std::vector<SampleRange>& list() const { return ranges_; }
  int64_t count() const;

  // The first sample from `position` on that is not in the set.
  int64_t next_outside(int64_t position) const;
  // The n-th of those, counted from 0.
  int64_t outside(int64_t position, int64_t n) const;

  // "4096-4607,9000": the first and the last sample of each range.
  std::string text() const;

  bool operator==(const SampleRanges&) const = default;

 private:
  std::vector<SampleRange> ranges_;
};

// The set that a text names, or the reason why it names none.
struct ParsedRanges {
  SampleRanges ranges;
  std::string why{};  // names the part of the text
};

// As SampleRanges::text(); the ranges may come in any order and overlap. An empty text names no
// sample.
ParsedRanges parse_sample_ranges(std::string_view text);

inline constexpr std::string_view kLegalSampleRanges =
    "FIRST-LAST,..., such as 4096-4607,9000-9099, or one number for one sample";

}  // namespace bev
