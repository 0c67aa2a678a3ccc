#include "data/fingerprint.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "base/sha256.h"

namespace bev {

namespace {

constexpr size_t kEnd = size_t{64} << 10;

std::string file_line(const std::filesystem::path& path) {
  const PositionedFile file(path);
  const size_t bytes = file.size(), end = std::min(bytes, kEnd);
  std::vector<std::byte> ends(2 * end);
  file.read(0, std::span(ends).first(end));
  file.read(bytes - end, std::span(ends).last(end));
  return format("{}: {} bytes, ends {}\n", path.string(), bytes, sha256(ends).substr(0, 16));
}

}  // namespace

std::string fingerprint(const TrainingData& data) {
  std::set<std::filesystem::path> prefixes;
  for (const TrainingData::Part& part : data.parts) prefixes.insert(part.prefix);
  std::string text;
  for (const std::filesystem::path& prefix : prefixes) {
    text += file_line(prefix.string() + ".bin");
    text += file_line(prefix.string() + ".idx");
  }
  return text;
}

}  // namespace bev
