#include "golden_runner/text_groups.h"

#include <algorithm>
#include <span>

#include "base/crypto.h"
#include "base/format.h"

namespace bev::golden {

void TextGroups::add(const std::string& group, bool right, std::string_view text) {
  Group& each = groups_[group];
  ++each.count;
  if (right) return;
  if (each.wrong++ == 0) each.first = text;
}

void TextGroups::tell(const std::string& name, Report& report) const {
  for (const auto& [group, each] : groups_) {
    const std::string case_name = format("{}: {}, {} texts", name, group, each.count);
    if (each.wrong == 0) {
      report.check(case_name, kHost, 0.0, 0.0);
    } else {
      report.fail(case_name, kHost,
                  format("{} wrong, the first {}", each.wrong, in_quotes(each.first)));
    }
  }
}

std::vector<int32_t> encoded(Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

size_t wrong_in_summary(const std::vector<int32_t>& ids, const Json& expected) {
  using Ids = std::vector<int32_t>;
  const std::vector<uint16_t> narrow_ids(ids.begin(), ids.end());
  const auto begins_with = [](const auto& from, const Json& those) {
    const Ids some = those.get<Ids>();
    const auto size = static_cast<std::ptrdiff_t>(some.size());
    return size <= from.second - from.first && std::equal(some.begin(), some.end(), from.first);
  };
  const auto last = static_cast<std::ptrdiff_t>(std::min(ids.size(), expected.at("last").size()));
  size_t wrong = 0;
  wrong += expected.at("count") == ids.size() ? 0 : 1;
  wrong += begins_with(std::pair(ids.begin(), ids.end()), expected.at("first")) ? 0 : 1;
  wrong += begins_with(std::pair(ids.end() - last, ids.end()), expected.at("last")) ? 0 : 1;
  wrong += expected.at("sha256_u16le") == sha256(std::as_bytes(std::span(narrow_ids))) ? 0 : 1;
  return wrong;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    lines.push_back(text.substr(0, newline));
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
  }
  return lines;
}

std::vector<std::filesystem::path> sorted_files(const std::filesystem::path& dir) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace bev::golden
