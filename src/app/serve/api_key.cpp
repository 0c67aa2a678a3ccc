#include "app/serve/api_key.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/file.h"

namespace bev::app {

namespace {

constexpr size_t kLeast = 16, kMost = 4096;

std::string checked(std::string key, const std::string& where) {
  while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
  BEV_CHECK(key.size() >= kLeast && key.size() <= kMost &&
                std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7F; }),
            Usage, "the key in {} must be {} to {} visible characters of ASCII", where, kLeast,
            kMost);
  return key;
}

}  // namespace

std::string api_key(const FlagValues& flags, const Getenv& getenv) {
  if (flags.has("--api-key-file")) {
    const std::string path = flags.path("--api-key-file");
    struct stat status{};
    BEV_CHECK(::stat(path.c_str(), &status) == 0, Usage, "--api-key-file {}: {}", path,
              std::strerror(errno));
    BEV_CHECK((status.st_mode & 077) == 0, Usage,
              "--api-key-file: others can read {} (mode {:04o}); legal is mode 0600: chmod 600 {}",
              path, status.st_mode & 07777, path);
    return checked(read_text(path, kMost + 2), path);
  }
  const char* value = getenv("BEVATRON_API_KEY");
  return value != nullptr ? checked(value, "BEVATRON_API_KEY") : "";
}

}  // namespace bev::app
