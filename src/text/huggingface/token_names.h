// The names of a vocabulary's tokens and their ids, in both directions. Ids may have gaps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bev {

class TokenNames {
 public:
  static constexpr int64_t kLimit = int64_t{1} << 22;  // ids are below it

  TokenNames() = default;
  TokenNames(TokenNames&&) = default;
  TokenNames& operator=(TokenNames&&) = default;

  // `source` and `path` name the place in messages. Data error when the id is beyond the limit, or
  // the name or the id is there already.
  void add(std::string_view name, int64_t id, std::string_view source, std::string_view path);

  std::optional<int32_t> find(std::string_view name) const;

  // Nothing when no token has the id.
  const std::string* name(int32_t id) const;

  // The largest id + 1, and how many tokens there are.
  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  int64_t count() const { return static_cast<int64_t>(ids_.size()); }

 private:
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library asks for it
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> names_;  // the keys of ids_, which do not move
};

}  // namespace bev
