// Unequal numbers of rows, for tests of communicators.
#pragma once

#include <cstdint>
#include <vector>

namespace bev::test {

constexpr int kUnevenCases = 5;

// Rows of one member. By case: none; one each; none to three; one member has all; many.
inline int64_t uneven_rows(int which, int member, int members) {
  switch (which) {
    case 0: return 0;
    case 1: return 1;
    case 2: return (5 * member + 2) % 4;
    case 3: return member == members - 1 ? 7 : 0;
    default: return member == 0 ? 0 : 1000 + 37 * member;
  }
}

inline std::vector<int64_t> uneven_bounds(int which, int members) {
  std::vector<int64_t> bounds{0};
  for (int r = 0; r < members; ++r)
    bounds.push_back(bounds.back() + uneven_rows(which, r, members));
  return bounds;
}

// Rows that one member sends to another: not the same in both directions.
inline int64_t rows_between(int which, int from, int to, int members) {
  return uneven_rows(which, (from + 2 * to + from * to) % members, members);
}

inline std::vector<int64_t> rows_to_all(int which, int from, int members) {
  std::vector<int64_t> rows;
  for (int to = 0; to < members; ++to) rows.push_back(rows_between(which, from, to, members));
  return rows;
}

inline std::vector<int64_t> rows_from_all(int which, int to, int members) {
  std::vector<int64_t> rows;
  for (int from = 0; from < members; ++from) rows.push_back(rows_between(which, from, to, members));
  return rows;
}

}  // namespace bev::test
