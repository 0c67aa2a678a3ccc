#include "base/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <functional>
#include <vector>

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

TEST_F(File, PiecesOfAFile) {
  const auto path = folder_ / "a";
  AtomicFile file(path);
  file.write("0123456789");
  file.commit();
  const PositionedFile pieces(path);
  EXPECT_EQ(pieces.size(), 10u);
  std::string part(4, ' ');
  pieces.read(3, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(part, "3456");
  // Somebody cut it meanwhile.
  std::filesystem::resize_file(path, 5);
  EXPECT_THROW(pieces.read(3, std::as_writable_bytes(std::span(part))), Error);
  EXPECT_THROW(PositionedFile(folder_ / "none"), Error);
}

// Errors in the order of a list (0: two bytes are read), then whole reads.
class Flaky {
 public:
  explicit Flaky(std::vector<int> errors) : errors_(std::move(errors)) {}
  ptrdiff_t operator()(std::byte* to, size_t count, size_t offset) {
    const int error = calls < errors_.size() ? errors_[calls] : 0;
    const bool part = calls++ < errors_.size();
    if (error != 0) {
      errno = error;
      return -1;
    }
    const size_t got = part ? std::min<size_t>(count, 2) : count;
    for (size_t i = 0; i < got; ++i) to[i] = static_cast<std::byte>(offset + i);
    return static_cast<ptrdiff_t>(got);
  }
  size_t calls = 0;

 private:
  std::vector<int> errors_;
};

TEST(ReadWithRetries, ErrorsThatPass) {
  std::vector<std::byte> out(10);
  Flaky flaky({EIO, 0, EINTR, ESTALE, 0, ETIMEDOUT});
  read_with_retries("a", 5, out, flaky, 3, 1e-4);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], static_cast<std::byte>(5 + i));
  EXPECT_EQ(flaky.calls, 7u);
}

TEST(ReadWithRetries, ErrorsThatStay) {
  std::vector<std::byte> out(10);
  Flaky away({EIO, EIO, EIO, EIO, EIO});
  try {
    read_with_retries("a.bin", 5, out, away, 3, 1e-4);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind, ErrorKind::Data);
    EXPECT_NE(std::string(e.what()).find("cannot read a.bin from byte 5 on, after 4 attempts"),
              std::string::npos)
        << e.what();
  }
  Flaky forbidden({EBADF});
  EXPECT_THROW(read_with_retries("a", 0, out, forbidden, 3, 1e-4), Error);
  EXPECT_EQ(forbidden.calls, 1u);  // trying again would not help
}

}  // namespace
}  // namespace bev
