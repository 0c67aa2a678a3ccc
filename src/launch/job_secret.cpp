#include "launch/job_secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/check.h"
#include "base/crypto.h"
#include "base/descriptor.h"

namespace bev {

namespace {

constexpr size_t kLeast = 16, kMost = 4096;
constexpr std::string_view kInstead =
    "set BEVATRON_SECRET to the same 16 or more characters for all ranks";

std::string checked_length(std::string text, const std::string& where) {
  BEV_CHECK(text.size() >= kLeast, Usage, "the secret in {} has {} characters; legal are {} to {}",
            where, text.size(), kLeast, kMost);
  BEV_CHECK(text.size() <= kMost, Usage, "the secret in {} has more than {} characters", where,
            kMost);
  return text;
}

void check_private(const struct stat& status, const std::string& path) {
  BEV_CHECK(S_ISREG(status.st_mode), Usage, "the secret {} is no file; legal is a file, or {}",
            path, kInstead);
  BEV_CHECK(status.st_uid == ::geteuid() || status.st_uid == 0, Usage,
            "the secret {} belongs to another user; legal is a file of your own, or {}", path,
            kInstead);
  BEV_CHECK(
      (status.st_mode & 077) == 0, Usage,
      "others can read or write the secret {} (mode {:04o}); legal is mode 0600: chmod 600 {}",
      path, status.st_mode & 07777, path);
}

std::string read_secret(int descriptor, const std::string& path) {
  struct stat status{};
  BEV_CHECK(::fstat(descriptor, &status) == 0, Usage, "cannot read the secret {}: {}", path,
            std::strerror(errno));
  check_private(status, path);
  std::optional<std::string> read = read_up_to(descriptor, kMost + 3);
  BEV_CHECK(read, Usage, "cannot read the secret {}: {}", path, std::strerror(errno));
  std::string text = std::move(*read);
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return checked_length(std::move(text), path);
}

// Makes the file under its name only when it is whole, and not where another process was first.
void make_secret(const std::string& path) {
  const auto refuse = [&](const std::string& what) {
    const std::string why = std::strerror(errno);
    throw Error(
        ErrorKind::Usage,
        format("cannot make the secret of the job, {}: {}: {}; legal is a home directory that "
               "can be written, or {}",
               path, what, why, kInstead));
  };
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) refuse(folder);
  const std::string temporary = format("{}.{}", path, random_name());
  const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) refuse(temporary);
  const bool is_written = write_all(file.get(), random_secret() + "\n") && ::fsync(file.get()) == 0;
  const bool is_there =
      is_written && (::link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int error = errno;
  ::unlink(temporary.c_str());
  errno = error;
  if (!is_there) refuse(is_written ? path : temporary);
}

std::string own_secret(const std::string& path) {
  for (const bool may_make : {true, false}) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (file.is_open()) return read_secret(file.get(), path);
    BEV_CHECK(may_make && errno == ENOENT, Usage, "cannot read the secret {}: {}; legal is to {}",
              path, std::strerror(errno), kInstead);
    make_secret(path);
  }
  throw Error(ErrorKind::Internal, "the secret was made and is not there");
}

}  // namespace

std::string random_secret() {
  std::string text;
  for (int i = 0; i < 4; ++i) text += random_name();
  return text;
}

std::string job_secret(const Getenv& getenv) {
  const std::string given = variable_text(getenv, "BEVATRON_SECRET");
  if (!given.empty()) return checked_length(given, "BEVATRON_SECRET");
  const std::string path = variable_text(getenv, "BEVATRON_SECRET_FILE");
  if (!path.empty()) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    BEV_CHECK(file.is_open(), Usage, "cannot read the file that BEVATRON_SECRET_FILE names, {}: {}",
              path, std::strerror(errno));
    return read_secret(file.get(), path);
  }
  const std::string home = variable_text(getenv, "HOME");
  BEV_CHECK(
      !home.empty(), Usage,
      "there is no secret for the job: BEVATRON_SECRET, BEVATRON_SECRET_FILE and HOME are not "
      "set; legal is to {}",
      kInstead);
  return own_secret(home + "/.bevatron/secret");
}

}  // namespace bev
