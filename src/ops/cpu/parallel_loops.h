// How the ops of the cpu backend spread over the threads of their device.
#pragma once

#include <algorithm>

#include "device/exec.h"
#include "device/thread_pool.h"

namespace bev::cpu {

inline HostDevice& host_of(Exec& ex) { return static_cast<HostDevice&>(ex.device); }
inline ThreadPool& threads_of(Exec& ex) { return host_of(ex).threads(); }

// Elements below which waking another thread costs more than it saves.
constexpr int64_t kGrain = 16384;

inline int64_t grain_rows(int64_t width) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width));
}

// Calls body(row, begin, end) on pieces that together cover [rows, width]. For element-wise work
// only: the cut depends on the number of threads.
template <class Body>
void each_piece(Exec& ex, int64_t rows, int64_t width, const Body& body) {
  threads_of(ex).split(rows * width, kGrain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t row = begin / width, column = begin % width;
      const int64_t count = std::min(width - column, end - begin);
      body(row, column, column + count);
      begin += count;
    }
  });
}

}  // namespace bev::cpu
