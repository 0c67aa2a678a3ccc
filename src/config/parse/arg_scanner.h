// The scanner of every command line: splits `--name=value`, takes the values after a flag,
// separates flags from positional arguments. The caller knows which flags exist.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "config/parse/command_line.h"

namespace bev {

inline constexpr VerbFlag kHelpFlag{"--help", "", "this text"};

inline bool asks_for_help(std::string_view arg) { return arg == kHelpFlag.name || arg == "-h"; }

// Null: not declared.
inline const VerbFlag* find_flag(std::span<const VerbFlag> flags, std::string_view name) {
  const auto found = std::ranges::find(flags, name, &VerbFlag::name);
  return found == flags.end() ? nullptr : &*found;
}

// A flag or a positional argument.
struct ScannedArg {
  std::string text{};                     // as written
  std::string name{};                     // the text before "="
  std::optional<std::string> attached{};  // the text after "="
  bool is_flag = false;
};

class ArgScanner {
 public:
  // A flag is neither positional nor the value of the flag before it.
  using IsFlag = bool (*)(std::string_view arg);

  // REQUIRES: `args` outlives this.
  ArgScanner(std::span<const std::string> args, IsFlag is_flag) : rest_(args), is_flag_(is_flag) {}

  // The next flag or positional argument; empty at the end.
  std::optional<ScannedArg> next() {
    if (rest_.empty()) return std::nullopt;
    const std::string arg = take();
    const size_t equals = arg.find('=');
    ScannedArg scanned{.text = arg, .name = arg.substr(0, equals), .is_flag = is_flag_(arg)};
    if (equals != std::string::npos) scanned.attached = arg.substr(equals + 1);
    return scanned;
  }

  // The arguments that were not taken yet.
  std::span<const std::string> rest() const { return rest_; }
  // Takes the next argument, even a flag. REQUIRES: there is one.
  std::string take() {
    const std::string& arg = rest_.front();
    rest_ = rest_.subspan(1);
    return arg;
  }

  // Whether a value follows: an argument that is not a flag.
  bool has_value() const { return !rest_.empty() && !is_flag_(rest_.front()); }
  // The attached value, or the one that follows; empty: neither.
  std::optional<std::string> take_value(const ScannedArg& flag) {
    return flag.attached || !has_value() ? flag.attached : take();
  }
  // The values up to the next flag.
  std::vector<std::string> take_values(size_t most) {
    std::vector<std::string> values;
    while (values.size() < most && has_value()) values.push_back(take());
    return values;
  }
  // Why take_value found none. `quoted` makes an argument printable.
  std::string why_no_value(std::string (*quoted)(std::string_view)) const {
    return rest_.empty() ? "it is the last argument"
                         : format("{} follows at once", quoted(rest_.front()));
  }

 private:
  std::span<const std::string> rest_;
  IsFlag is_flag_;
};

}  // namespace bev
