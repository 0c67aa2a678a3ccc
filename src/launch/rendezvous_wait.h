// How long machines are waited for before an attempt.
#pragma once

#include <cstdint>

namespace bev {

class RollCall {
 public:
  struct Limits {
    int least = 1, most = 1;
    double last_call = 30;  // seconds for others, once the least are there
    double join = 600;      // seconds for the least
  };
  enum class Verdict : uint8_t { Wait, Go, TooFew };

  RollCall(const Limits& limits, double now) : limits_(limits), started_(now) {}

  // As often as one likes. Go: as many are there as can take part, or the last call is over.
  Verdict judge(int present, double now);
  // Those who are there cannot do it: others are waited for.
  void refuse(int present) { refused_ = present; }
  // Whether the last call has begun.
  bool is_last_call() const { return called_ >= 0; }

 private:
  Limits limits_;
  double started_;
  double called_ = -1;  // when the last call began; -1: it has not
  int refused_ = 0;
};

}  // namespace bev
