#include "checkpoint/checkpoint_draft.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "base/check.h"
#include "base/file.h"

namespace bev {

namespace fs = std::filesystem;

namespace {

void flush_folder(const fs::path& path) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

}  // namespace

CheckpointDraft::CheckpointDraft(const CheckpointFolder& folder, int64_t iteration)
    : folder_(folder),
      iteration_(iteration),
      path_(folder.hidden_place(iteration, CheckpointFolder::Hidden::Draft)),
      place_(folder.place_of(iteration)) {}

void CheckpointDraft::start() const {
  std::error_code error;
  fs::create_directories(folder_.root(), error);
  if (!error) fs::remove_all(path_, error);
  if (!error) fs::create_directory(path_, error);
  BEV_CHECK(!error, Data, "cannot make the folder {}: {}", path_.string(), error.message());
}

void CheckpointDraft::drop() const noexcept {
  std::error_code ignored;  // what cannot be removed now is removed by the next run
  fs::remove_all(path_, ignored);
}

std::string CheckpointDraft::commit() const {
  flush_folder(path_);
  if (::rename(path_.c_str(), place_.c_str()) != 0) {
    const bool is_full = errno == ENOTEMPTY || errno == EEXIST;
    BEV_CHECK(is_full && replace(), Data, "cannot write {}: {}", place_.string(),
              std::strerror(errno));
  }
  flush_folder(folder_.root());
  try {
    AtomicFile hint(folder_.tracker());
    hint.write(iteration_ < 0 ? place_.filename().string() : format("{}", iteration_));
    hint.commit();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool CheckpointDraft::replace() const {
  std::error_code ignored;
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, place_.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(path_, ignored);
    return true;
  }
  // Network file systems cannot exchange names.
  const fs::path aside = folder_.hidden_place(iteration_, CheckpointFolder::Hidden::Replaced);
  fs::remove_all(aside, ignored);
  if (::rename(place_.c_str(), aside.c_str()) != 0) return false;
  if (::rename(path_.c_str(), place_.c_str()) != 0) {
    const int why = errno;
    ::rename(aside.c_str(), place_.c_str());
    errno = why;
    return false;
  }
  fs::remove_all(aside, ignored);
  return true;
}

}  // namespace bev
