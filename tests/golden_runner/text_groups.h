// What the parts of the golden runner that encode texts share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "golden_runner/report.h"
#include "text/tokenizer.h"

namespace bev::golden {

// Texts that came out wrong, by group; the first of each group is told.
class TextGroups {
 public:
  void add(const std::string& group, bool right, std::string_view text);
  void tell(const std::string& name, Report& report) const;

 private:
  struct Group {
    size_t count = 0, wrong = 0;
    std::string first;
  };
  std::map<std::string, Group> groups_;
};

std::vector<int32_t> encoded(Tokenizer& tokenizer, std::string_view text);

// How many of `expected` (count, digest, the first and the last) the ids do not have.
size_t wrong_in_summary(const std::vector<int32_t>& ids, const Json& expected);

// Lines without their newline; a newline at the very end starts no further line.
std::vector<std::string_view> lines_of(std::string_view text);

std::vector<std::filesystem::path> sorted_files(const std::filesystem::path& dir);

}  // namespace bev::golden
