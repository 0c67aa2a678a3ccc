#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "app/cli/stdio_files.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev::app {
namespace {

using test::expect_error;

void put(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(ResultFile, AnOldFileStaysUntilTheFirstResult) {
  const test::TemporaryDirectory dir;
  put(dir / "r", "old results, of which there are many");
  {
    const ResultFile without_results(dir / "r");
  }
  EXPECT_EQ(text_of(dir / "r"), "old results, of which there are many");
  ResultFile file(dir / "r");
  file.write("new");
  EXPECT_EQ(text_of(dir / "r"), "new");
  file.write("er");
  EXPECT_EQ(text_of(dir / "r"), "newer");
}

TEST(ResultFile, AnEmptyResultIsOne) {
  const test::TemporaryDirectory dir;
  put(dir / "r", "old");
  ResultFile(dir / "r").write("");
  ResultFile(dir / "s").write("");
  EXPECT_EQ(text_of(dir / "r"), "");
  EXPECT_TRUE(std::filesystem::exists(dir / "s"));
}

TEST(ResultFile, WithoutAResultThereIsNoNewFile) {
  const test::TemporaryDirectory dir;
  {
    const ResultFile file(dir / "r");
    EXPECT_TRUE(std::filesystem::exists(dir / "r"));
  }
  EXPECT_FALSE(std::filesystem::exists(dir / "r"));
}

TEST(ResultFile, WhatCannotBeWrittenIsKnownAtOnce) {
  const test::TemporaryDirectory dir;
  expect_error(ErrorKind::Data, "cannot write", [&] { ResultFile(dir / "none/r"); });
  expect_error(ErrorKind::Data, "Is a directory", [&] { ResultFile(dir.path()); });
}

TEST(ResultFile, APipeHasNoOldResults) {
  const test::TemporaryDirectory dir;
  ASSERT_EQ(::mkfifo((dir / "p").c_str(), 0600), 0);
  const int reader = ::open((dir / "p").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ResultFile(dir / "p").write("text");
  char bytes[8];
  EXPECT_EQ(::read(reader, bytes, sizeof bytes), 4);
  ::close(reader);
}

}  // namespace
}  // namespace bev::app
