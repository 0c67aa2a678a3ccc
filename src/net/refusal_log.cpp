#include "net/refusal_log.h"

#include "base/format.h"

namespace bev {

namespace {

constexpr uint64_t kOneByOne = 5;
constexpr std::chrono::seconds kPause{10};

}  // namespace

void RefusalNotes::refused(const std::string& who, const std::string& why) {
  if (noted_ == kOneByOne) {
    ++not_noted_;
    return;
  }
  ++noted_;
  note_(format("refused a connection from {}: {}", who, why));
}

void RefusalNotes::tick(Time now) {
  if (not_noted_ == 0 || now < next_) return;
  next_ = now + kPause;
  note_(format("refused {} more connection{}", not_noted_, not_noted_ == 1 ? "" : "s"));
  not_noted_ = 0;
}

}  // namespace bev
