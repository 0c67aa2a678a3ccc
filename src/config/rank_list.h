// Some ranks as people type them: "all", "0", "0,2-5".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace bev {

class RankList {
 public:
  // Empty when the text is none of these.
  static std::optional<RankList> parse(std::string_view text);

  bool has(int64_t rank) const;

 private:
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // first and last
};

}  // namespace bev
