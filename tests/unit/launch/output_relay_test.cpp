#include "launch/output_relay.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <vector>

namespace bev {
namespace {

std::vector<std::string> cut(size_t longest, const std::vector<std::string>& pieces) {
  std::vector<std::string> lines;
  const auto use = [&](std::string_view line) { lines.emplace_back(line); };
  LineCutter cutter(longest);
  for (const std::string& piece : pieces) cutter.add(piece, use);
  cutter.finish(use);
  return lines;
}

using Lines = std::vector<std::string>;

TEST(LineCutter, LinesComeWhole) {
  EXPECT_EQ(cut(10, {"a", "b\nc", "\n", "\n", "d"}), (Lines{"ab", "c", "", "d"}));
  EXPECT_EQ(cut(10, {"a\nb\n"}), (Lines{"a", "b"}));
  EXPECT_EQ(cut(10, {}), Lines{});
}

TEST(LineCutter, LongLinesComeInPieces) {
  EXPECT_EQ(cut(4, {"abcdefghij\nk\n"}), (Lines{"abcd", "efgh", "ij", "k"}));
  // No empty line where the length is just the longest.
  EXPECT_EQ(cut(4, {"abcd\nx\n"}), (Lines{"abcd", "x"}));
  EXPECT_EQ(cut(4, {"abc", "d", "\nx\n"}).back(), "x");
}

TEST(LineCutter, BytesOfAnyKindPass) {
  const std::string bytes("\0\xff\r\x01", 4);
  EXPECT_EQ(cut(10, {bytes + "\n"}), Lines{bytes});
}

TEST(RelayStream, NobodyReadsAndNothingHappens) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  ::close(pipe[0]);
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  RelayStream console(pipe[1]);
  console.add("lost");
  EXPECT_TRUE(console.has_pending());
  console.write_some();
  EXPECT_FALSE(console.has_pending());
  console.add("lost too");
  EXPECT_FALSE(console.has_pending());
  std::signal(SIGPIPE, before);
  ::close(pipe[1]);
}

TEST(RelayStream, WritesNoMoreThanAPipeTakes) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  RelayStream console(pipe[1]);
  console.add(std::string(10000, 'x'));
  console.write_some();
  std::array<char, 65536> read{};
  EXPECT_EQ(::read(pipe[0], read.data(), read.size()), 4096);
  EXPECT_TRUE(console.has_pending());
  ::close(pipe[0]);
  ::close(pipe[1]);
}

}  // namespace
}  // namespace bev
