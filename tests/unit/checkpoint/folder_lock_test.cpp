#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "checkpoint/checkpoint_folder.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

TEST(FolderLock, OneRunAtATime) {
  const test::TemporaryDirectory folder;
  std::optional<FolderLock> first(std::in_place, folder / "new/checkpoints");
  test::expect_error(ErrorKind::Data, "another run saves its checkpoints",
                     [&] { FolderLock second(folder / "new/checkpoints", 0); });
  const FolderLock elsewhere(folder / "other");
  first.reset();
  const FolderLock third(folder / "new/checkpoints", 0);
}

TEST(FolderLock, WaitsForOneThatIsAboutToEnd) {
  const test::TemporaryDirectory folder;
  std::optional<FolderLock> first(std::in_place, folder.path());
  std::thread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    first.reset();
  });
  const FolderLock second(folder.path(), 60);
  ends.join();
}

}  // namespace
}  // namespace bev
