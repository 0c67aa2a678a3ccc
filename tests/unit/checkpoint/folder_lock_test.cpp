#include "checkpoint/folder_lock.h"

#include <gtest/gtest.h>

#include <optional>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

TEST(FolderLock, OneRunAtATime) {
  const test::TemporaryDirectory folder;
  std::optional<FolderLock> first(std::in_place, folder / "new/checkpoints");
  test::expect_error(ErrorKind::Data, "another run saves its checkpoints",
                     [&] { FolderLock second(folder / "new/checkpoints"); });
  const FolderLock elsewhere(folder / "other");
  first.reset();
  const FolderLock third(folder / "new/checkpoints");
}

}  // namespace
}  // namespace bev
