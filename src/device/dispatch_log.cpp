#include "device/dispatch_log.h"

#include <algorithm>

namespace bev {

void DispatchLog::note(std::string_view op, std::string_view chosen, std::string_view refused) {
  if (!enabled_) return;
  const bool known = std::any_of(choices_.begin(), choices_.end(), [&](const Choice& c) {
    return c.op == op && c.chosen == chosen && c.refused == refused;
  });
  if (!known) choices_.push_back({std::string(op), std::string(chosen), std::string(refused)});
}

}  // namespace bev
