// Where the value of a field came from.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace bev {

// In the order of precedence: a later kind wins over an earlier one.
enum class OriginKind : uint8_t { Default, Preset, File, Flag };

struct Origin {
  OriginKind kind = OriginKind::Default;
  std::string text = "default";  // "default", "preset gpt2-124m", "run.toml:12", "--hidden-size"
};

// By field path ("model.width"). A path that is absent has its default.
using Origins = std::map<std::string, Origin, std::less<>>;

}  // namespace bev
