#include "base/error.h"

#include <utility>

namespace bev {

namespace {

std::vector<std::string>& activities() {
  thread_local std::vector<std::string> stack;
  return stack;
}

}  // namespace

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Usage: return 2;
    case ErrorKind::Data: return 3;
    case ErrorKind::Device: return 4;
    case ErrorKind::Comm: return 5;
    case ErrorKind::Numerics: return 6;
    case ErrorKind::Internal: return 70;
  }
  return 70;
}

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Usage: return "usage";
    case ErrorKind::Data: return "data";
    case ErrorKind::Device: return "device";
    case ErrorKind::Comm: return "communication";
    case ErrorKind::Numerics: return "numerics";
    case ErrorKind::Internal: return "internal";
  }
  return "internal";
}

Error::Error(ErrorKind error_kind, const std::string& message, std::source_location place)
    : std::runtime_error(message), kind(error_kind), where(place), context(activities()) {}

ErrorContext::ErrorContext(std::string activity) { activities().push_back(std::move(activity)); }

ErrorContext::~ErrorContext() { activities().pop_back(); }

}  // namespace bev
