#include "base/process_identity.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace bev {
namespace {

TEST(ProcessIdentity, ThisOneIsAlive) {
  const ProcessIdentity own = own_process();
  EXPECT_EQ(own.pid, ::getpid());
  EXPECT_GT(own.start, 0);
  EXPECT_FALSE(own.machine.empty());
  EXPECT_EQ(life_of(own), ProcessState::Alive);
}

TEST(ProcessIdentity, APidThatWasUsedAgainIsSomebodyElse) {
  ProcessIdentity other = own_process();
  ++other.start;
  EXPECT_EQ(life_of(other), ProcessState::Gone);
}

TEST(ProcessIdentity, OfAnotherMachineNothingIsKnown) {
  ProcessIdentity other = own_process();
  other.machine += "x";
  EXPECT_EQ(life_of(other), ProcessState::Unknown);
  other.machine.clear();
  EXPECT_EQ(life_of(other), ProcessState::Unknown);
  EXPECT_EQ(life_of({}), ProcessState::Unknown);
  EXPECT_EQ(life_of({.pid = int64_t{1} << 40, .start = 1, .machine = own_process().machine}),
            ProcessState::Unknown);
}

TEST(ProcessIdentity, OneThatHasEndedIsGoneAlsoBeforeItsParentAsks) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const ProcessIdentity own = own_process();
    (void)!::write(pipe[1], &own.start, sizeof own.start);
    ::pause();
    ::_exit(0);
  }
  ProcessIdentity name = own_process();
  name.pid = child;
  ASSERT_EQ(::read(pipe[0], &name.start, sizeof name.start), ssize_t{sizeof name.start});
  EXPECT_EQ(life_of(name), ProcessState::Alive);
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(life_of(name), ProcessState::Gone) << "a zombie";
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(life_of(name), ProcessState::Gone);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(ProcessIdentity, FieldsBehindANameOfAnyCharacters) {
  const std::string_view line = "17 (a) b (c) S 1 2 3\n";
  EXPECT_EQ(stat_field(line, 3), "S");
  EXPECT_EQ(stat_field(line, 6), "3");
  EXPECT_EQ(stat_field(line, 7), "");
  EXPECT_EQ(stat_field(line, 1), "");
  EXPECT_EQ(stat_field("", 3), "");
  EXPECT_EQ(stat_field("17 (a)", 3), "");
}

}  // namespace
}  // namespace bev
