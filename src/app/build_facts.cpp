#include "app/build_facts.h"

#include "base/format.h"

namespace bev::app {

namespace {

std::string sanitizer() {
#if defined(__SANITIZE_ADDRESS__)
  return ", address sanitizer";
#elif defined(__SANITIZE_THREAD__)
  return ", thread sanitizer";
#else
  return "";
#endif
}

}  // namespace

std::string program_version() { return BEV_VERSION; }

std::string compiler() {
#if defined(__clang__)
  return format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::string build_kind() {
#ifdef NDEBUG
  return "release" + sanitizer();
#else
  return "with assertions" + sanitizer();
#endif
}

}  // namespace bev::app
