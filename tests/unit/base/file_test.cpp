#include "base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "base/error.h"

namespace bev {
namespace {

class File : public ::testing::Test {
 protected:
  File()
      : folder_(std::filesystem::temp_directory_path() /
                ("bevatron-file-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~File() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(File, AtomicFileAppearsWithCommitOnly) {
  const auto path = folder_ / "a";
  {
    AtomicFile(path).write("half");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  AtomicFile file(path);
  file.write("whole");
  file.commit();
  EXPECT_EQ(read_text(path), "whole");
  {
    AtomicFile(path).write("newer, never committed");
  }
  EXPECT_EQ(read_text(path), "whole");
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) files += entry.exists();
  EXPECT_EQ(files, 1u);
}

TEST_F(File, ErrorsNameThePath) {
  const auto path = folder_ / "no" / "such";
  for (const auto& attempt : {std::function<void()>([&] { MappedFile m(path); }),
                              std::function<void()>([&] { read_text(path); }),
                              std::function<void()>([&] { AtomicFile f(path); }),
                              std::function<void()>([&] { MappedFile m(folder_); })}) {
    try {
      attempt();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind, ErrorKind::Data);
      EXPECT_NE(std::string(error.what()).find(folder_.string()), std::string::npos);
    }
  }
}

TEST_F(File, AFullDiskIsADataError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  std::filesystem::create_symlink("/dev/full",
                                  folder_ / ("x.partial." + std::to_string(::getpid())));
  AtomicFile file(folder_ / "x");
  EXPECT_THROW(
      {
        file.write(std::string(1 << 20, 'x'));
        file.commit();
      },
      Error);
}

TEST_F(File, MapsWhatIsThere) {
  std::ofstream(folder_ / "b") << "content";
  const MappedFile mapped(folder_ / "b");
  EXPECT_EQ(mapped.bytes().size(), 7u);
  EXPECT_EQ(static_cast<char>(mapped.bytes()[6]), 't');
  std::ofstream(folder_ / "empty").flush();
  EXPECT_EQ(MappedFile(folder_ / "empty").bytes().size(), 0u);
  EXPECT_THROW(read_text(folder_ / "b", 3), Error);
}

}  // namespace
}  // namespace bev
