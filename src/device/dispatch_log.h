// Which implementation each op chose, and why others were refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bev {

class DispatchLog {
 public:
  struct Choice {
    std::string op, chosen, refused;
  };

  void enable() { enabled_ = true; }
  bool enabled() const { return enabled_; }

  // Keeps each distinct choice once, in order; nothing unless enabled. `refused`: "name: why; ...".
  void note(std::string_view op, std::string_view chosen, std::string_view refused = "");
  const std::vector<Choice>& choices() const { return choices_; }

 private:
  bool enabled_ = false;
  std::vector<Choice> choices_;
};

}  // namespace bev
