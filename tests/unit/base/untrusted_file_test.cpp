#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

TEST(UntrustedFile, ARegularOneIsReadUpToALimit) {
  const test::TemporaryDirectory dir;
  const std::string path = (dir / "a").string();
  std::ofstream(path) << "0123456789";
  const auto found = find_file(AT_FDCWD, path);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->other, "");
  EXPECT_EQ(found->owner, ::geteuid());
  EXPECT_EQ(found->stamp.bytes, 10);
  EXPECT_EQ(read_found(AT_FDCWD, path, 4), "0123");
  EXPECT_EQ(read_found(AT_FDCWD, path, 99), "0123456789");
  EXPECT_EQ(find_file(AT_FDCWD, path)->stamp, found->stamp);
  std::ofstream(path) << "other";
  EXPECT_NE(find_file(AT_FDCWD, path)->stamp, found->stamp);
}

TEST(UntrustedFile, WhatIsNoFileIsNamedAndNeverRead) {
  const test::TemporaryDirectory dir;
  std::ofstream(dir / "file") << "secret";
  std::filesystem::create_symlink(dir / "file", dir / "link");
  std::filesystem::create_directory(dir / "folder");
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  const std::pair<const char*, const char*> kinds[] = {
      {"link", "a symbolic link"}, {"folder", "a folder"}, {"pipe", "a pipe"}};
  for (const auto& [name, kind] : kinds) {
    EXPECT_EQ(find_file(AT_FDCWD, (dir / name).string())->other, kind);
    EXPECT_FALSE(read_found(AT_FDCWD, (dir / name).string(), 9)) << name;
  }
  EXPECT_EQ(find_file(AT_FDCWD, "/dev/null")->other, "a device");
  EXPECT_FALSE(find_file(AT_FDCWD, (dir / "none").string()));
  EXPECT_FALSE(read_found(AT_FDCWD, (dir / "none").string(), 9));
}

}  // namespace
}  // namespace bev
