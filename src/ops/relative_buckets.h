// The buckets of relative positions (Raffel et al. 2020, T5): one definition for all backends.
#pragma once

#include <cmath>
#include <cstdint>

namespace bev::ops {

constexpr int kMostRelativeBuckets = 256;
constexpr int64_t kMostRelativeDistance = int64_t{1} << 20;

// The bucket of a key relative to a query. Half of the buckets of a direction hold one distance
// each; the others grow with the logarithm of the distance, and the last one holds everything from
// about max_distance on.
//   bidirectional: half of the buckets are for keys up to the query, the others for keys after it
//   otherwise: keys after the query share bucket 0 with the query itself
class RelativeBuckets {
 public:
  static bool are_valid(int64_t buckets, int64_t max_distance, bool bidirectional) {
    const int64_t side = bidirectional ? buckets / 2 : buckets;
    return buckets <= kMostRelativeBuckets && side >= 2 && max_distance > side / 2 &&
           max_distance <= kMostRelativeDistance;
  }

  // REQUIRES: are_valid().
  RelativeBuckets(int64_t buckets, int64_t max_distance, bool bidirectional)
      : side_(static_cast<int>(bidirectional ? buckets / 2 : buckets)),
        exact_(side_ / 2),
        bidirectional_(bidirectional) {
    int distance = 0;
    for (int bucket = 0; bucket < side_; ++bucket) {
      while (nearest_bucket(distance, max_distance) < bucket) ++distance;
      first_[bucket] = distance;
    }
  }

  // `relative`: position of the key minus position of the query.
  constexpr int bucket(int64_t relative) const {
    const bool is_after = relative > 0;
    if (is_after && !bidirectional_) return 0;
    const int64_t distance = is_after ? relative : -relative;
    int bucket = distance < exact_ ? static_cast<int>(distance) : exact_;
    while (bucket + 1 < side_ && first_[bucket + 1] <= distance) ++bucket;
    return is_after ? side_ + bucket : bucket;
  }

  // The distances of key - query, [first, end), that have a bucket; none: first >= end.
  struct Range {
    int64_t first, end;
  };
  constexpr Range relative_positions(int bucket) const {
    constexpr int64_t kFar = INT64_MAX / 4;
    const bool is_after = bucket >= side_;
    const int inside = is_after ? bucket - side_ : bucket;
    if (inside >= side_ || (is_after && !bidirectional_)) return {0, 0};
    const int64_t near = first_[inside];
    const int64_t far = inside + 1 < side_ ? first_[inside + 1] : kFar;
    if (is_after) return {near > 1 ? near : 1, far};
    return {1 - far, bucket == 0 && !bidirectional_ ? kFar : 1 - near};
  }

 private:
  // In f32, as transformers computes it: if the quotient of the logarithms is a whole number, its
  // rounding decides. Each logarithm is the f32 next to the true one, whatever the library.
  int nearest_bucket(int distance, int64_t max_distance) const {
    if (distance < exact_) return distance;
    const auto log_of = [](double x) { return static_cast<float>(std::log(x)); };
    const auto exact = static_cast<float>(exact_);
    const float ratio = static_cast<float>(distance) / exact;
    const float most = log_of(static_cast<double>(max_distance) / static_cast<double>(exact_));
    const float place =
        log_of(static_cast<double>(ratio)) / most * static_cast<float>(side_ - exact_);
    return exact_ + static_cast<int>(place);
  }

  int side_, exact_;  // buckets of a direction, and those of one distance
  bool bidirectional_;
  int first_[kMostRelativeBuckets]{};  // the smallest distance of each bucket of a direction
};

}  // namespace bev::ops
