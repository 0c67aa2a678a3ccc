#include "launch/supervisor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

using std::chrono::milliseconds;
using test::expect_error;
using test::TemporaryDirectory;

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Waits for what another process does; generous, since machines may be busy.
bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(20));
  }
  return false;
}

class Supervisor : public ::testing::Test {
 protected:
  // A job whose ranks run a script of the shell; $F is the folder of the test.
  LaunchJob job(int ranks, const std::string& script) {
    LaunchJob job;
    job.command = {"/bin/sh", "-c", "F='" + folder_.path().string() + "'; " + script};
    job.local_size = job.size = ranks;
    job.master_host = "127.0.0.1";
    job.secret = "0123456789abcdef";
    job.outputs.resize(static_cast<size_t>(ranks));
    job.until_asked = milliseconds(300);
    job.until_killed = milliseconds(300);
    job.first_backoff = milliseconds(10);
    return job;
  }

  int run(LaunchJob job) {
    job.out = ::open((folder_ / "out").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    job.err = ::open((folder_ / "err").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int code = supervise(job, [&](const std::string& text) { notes_ += text + "\n"; });
    ::close(job.out);
    ::close(job.err);
    return code;
  }

  // The supervisor in a process of its own, for tests that send it signals.
  pid_t run_apart(const LaunchJob& job) {
    const pid_t process = ::fork();
    if (process == 0) {
      // A test that fails leaves nobody behind.
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::_exit(run(job));
    }
    return process;
  }

  static int code_of(pid_t process) {
    int status = 0;
    const bool has_ended =
        eventually([&] { return ::waitpid(process, &status, WNOHANG) == process; });
    EXPECT_TRUE(has_ended) << "the supervisor does not end";
    if (!has_ended) {
      ::kill(process, SIGKILL);
      ::waitpid(process, &status, 0);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  pid_t number_in(const std::string& file) {
    EXPECT_TRUE(eventually([&] { return content(folder_ / file).ends_with('\n'); })) << file;
    const std::string text = content(folder_ / file);
    return text.empty() ? -1 : static_cast<pid_t>(std::stoi(text));
  }

  std::vector<std::string> sorted_lines(const std::string& file) {
    std::ifstream in(folder_ / file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  TemporaryDirectory folder_;
  std::string notes_;
};

bool is_gone(pid_t process) { return ::kill(process, 0) != 0; }

TEST_F(Supervisor, RanksKnowThemselves) {
  LaunchJob two =
      job(2,
          "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR "
          "$MASTER_PORT $BEVATRON_SECRET $BEVATRON_JOB $BEVATRON_RESTART "
          "$OMPI_COMM_WORLD_RANK");
  two.first_rank = 2;
  two.size = 4;
  two.node = 1;
  two.master_host = "head";
  two.master_port = 1234;
  two.job = "name";
  ::setenv("OMPI_COMM_WORLD_RANK", "7", 1);
  ::setenv("RANK", "9", 1);
  EXPECT_EQ(run(two), 0);
  ::unsetenv("OMPI_COMM_WORLD_RANK");
  ::unsetenv("RANK");
  EXPECT_EQ(sorted_lines("out"),
            (std::vector<std::string>{"2 0 4 2 1 head 1234 0123456789abcdef name 0",
                                      "3 1 4 2 1 head 1234 0123456789abcdef name 0"}));
  EXPECT_EQ(notes_, "");
}

TEST_F(Supervisor, OneMachineGetsAFreePort) {
  EXPECT_EQ(run(job(1, "test $MASTER_PORT -gt 1000")), 0);
}

TEST_F(Supervisor, FailingRankEndsTheOthers) {
  EXPECT_EQ(run(job(3, "if [ $RANK = 1 ]; then exit 3; fi; exec sleep 1000")), 3);
  EXPECT_NE(notes_.find("rank 1"), std::string::npos) << notes_;
  EXPECT_NE(notes_.find("failed first: exit code 3"), std::string::npos) << notes_;
  EXPECT_NE(notes_.find("ranks 0, 2: killed by signal 15 (SIGTERM)"), std::string::npos) << notes_;
}

TEST_F(Supervisor, CulpritIsTheOneThatWasNotLetDown) {
  LaunchJob both = job(2, "if [ $RANK = 0 ]; then exit 5; fi; sleep 0.5; exit 6");
  both.until_asked = milliseconds(20000);
  both.is_own_program = true;
  EXPECT_EQ(run(both), 6);
  EXPECT_NE(notes_.find("rank 1 (process"), std::string::npos) << notes_;
  EXPECT_NE(notes_.find("rank 0: exit code 5 (communication error)"), std::string::npos) << notes_;
}

TEST_F(Supervisor, KilledRankIsNamedWithItsSignal) {
  EXPECT_EQ(run(job(2, "if [ $RANK = 1 ]; then kill -9 $$; fi; exec sleep 1000")), 128 + 9);
  EXPECT_NE(notes_.find("killed by signal 9 (SIGKILL)"), std::string::npos) << notes_;
}

TEST_F(Supervisor, RankThatIgnoresTheRequestIsKilled) {
  EXPECT_EQ(run(job(2,
                    "if [ $RANK = 1 ]; then until [ -e $F/ready ]; do sleep 0.02; done; exit 4; fi;"
                    "trap '' TERM; touch $F/ready; while :; do sleep 0.1; done")),
            4);
  EXPECT_NE(notes_.find("rank 0: killed by signal 9"), std::string::npos) << notes_;
}

TEST_F(Supervisor, RanksMayEndByThemselves) {
  LaunchJob slow = job(2, "if [ $RANK = 1 ]; then exit 3; fi; sleep 0.3; exit 5");
  slow.until_asked = milliseconds(20000);
  EXPECT_EQ(run(slow), 3);
  EXPECT_NE(notes_.find("rank 0: exit code 5"), std::string::npos) << notes_;
}

TEST_F(Supervisor, RestartsAreCounted) {
  LaunchJob again = job(2,
                        "if [ $RANK = 0 ]; then echo $BEVATRON_RESTART; fi; "
                        "if [ $BEVATRON_RESTART -lt 2 ]; then exit 5; fi");
  again.max_restarts = 5;
  EXPECT_EQ(run(again), 0);
  EXPECT_EQ(sorted_lines("out"), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_NE(notes_.find("restart 2 of 5"), std::string::npos) << notes_;
}

TEST_F(Supervisor, RestartsEnd) {
  LaunchJob again = job(1, "echo x; exit 4");
  again.max_restarts = 2;
  EXPECT_EQ(run(again), 4);
  EXPECT_EQ(sorted_lines("out").size(), 3U);
  EXPECT_NE(notes_.find("not started again: that was restart 2 of 2"), std::string::npos) << notes_;
}

TEST_F(Supervisor, WrongUsageIsNotRepeated) {
  LaunchJob again = job(1, "echo x; exit 2");
  again.max_restarts = 2;
  EXPECT_EQ(run(again), 2);
  EXPECT_EQ(sorted_lines("out").size(), 1U);
}

TEST_F(Supervisor, ProgramThatIsNotThereIsAUsageError) {
  LaunchJob nothing = job(2, "");
  nothing.command = {"/no/such/program"};
  expect_error(ErrorKind::Usage, "/no/such/program: No such file", [&] { run(nothing); });
}

TEST_F(Supervisor, LinesHaveTheirRank) {
  LaunchJob tee = job(3, "for i in 1 2 3 4 5; do echo $RANK line $i; done; printf end");
  for (RankOutput& output : tee.outputs) output.tee = 3;
  tee.log_folder = folder_ / "logs";
  EXPECT_EQ(run(tee), 0);
  std::vector<std::string> expected;
  for (int rank = 0; rank < 3; ++rank) {
    const std::string prefix = "[rank" + std::to_string(rank) + "]: ";
    expected.push_back(prefix + "end");
    for (int i = 1; i <= 5; ++i)
      expected.push_back(prefix + std::to_string(rank) + " line " + std::to_string(i));
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(sorted_lines("out"), expected);
  EXPECT_EQ(content(folder_ / "logs/attempt_0/2/stdout.log"),
            "2 line 1\n2 line 2\n2 line 3\n2 line 4\n2 line 5\nend");
}

TEST_F(Supervisor, LongLinesOfSeveralRanksDoNotMix) {
  LaunchJob tee =
      job(2, "for i in 1 2 3 4 5 6 7 8; do head -c 30000 /dev/zero | tr '\\0' $RANK; echo; done");
  for (RankOutput& output : tee.outputs) output.tee = 1;
  EXPECT_EQ(run(tee), 0);
  const auto lines = sorted_lines("out");
  ASSERT_EQ(lines.size(), 16U);
  EXPECT_EQ(lines.front(), "[rank0]: " + std::string(30000, '0'));
  EXPECT_EQ(lines.back(), "[rank1]: " + std::string(30000, '1'));
}

TEST_F(Supervisor, StreamsGoWhereTheyShould) {
  LaunchJob both = job(2, "echo out; echo err >&2; exit $RANK");
  both.outputs[0].redirect = 1;
  both.outputs[1].redirect = 2;
  both.log_folder = folder_ / "logs";
  EXPECT_EQ(run(both), 1);
  EXPECT_EQ(content(folder_ / "logs/attempt_0/0/stdout.log"), "out\n");
  EXPECT_EQ(content(folder_ / "logs/attempt_0/1/stderr.log"), "err\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "logs/attempt_0/1/stdout.log"));
  EXPECT_EQ(sorted_lines("out").size(), 1U);
  EXPECT_EQ(sorted_lines("err").size(), 1U);
  EXPECT_NE(notes_.find("its last lines on stderr:\n    err"), std::string::npos) << notes_;
}

TEST_F(Supervisor, ClosedStreamIsNoFailure) {
  LaunchJob tee = job(1, "exec 1>&- 2>&-; sleep 0.2; exit 0");
  tee.outputs[0].tee = 3;
  EXPECT_EQ(run(tee), 0);
}

TEST_F(Supervisor, ReaderThatGoesAwayIsNoFailure) {
  LaunchJob tee =
      job(1, "for i in 1 2 3 4 5 6 7 8 9; do head -c 100000 /dev/zero; echo; done; touch $F/done");
  tee.outputs[0].tee = 1;
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  ::close(pipe[0]);
  tee.out = pipe[1];
  EXPECT_EQ(supervise(tee, [](const std::string&) {}), 0);
  ::close(pipe[1]);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "done"));
}

TEST_F(Supervisor, ChildThatLivesOnDoesNotHoldTheEnd) {
  LaunchJob tee = job(1, "sleep 30 & echo $! > $F/pid; echo over");
  tee.outputs[0].tee = 1;
  EXPECT_EQ(run(tee), 0);
  EXPECT_EQ(sorted_lines("out"), std::vector<std::string>{"[rank0]: over"});
  ::kill(number_in("pid"), SIGKILL);
}

TEST_F(Supervisor, SignalReachesEveryRankOnce) {
  const LaunchJob both =
      job(2,
          "n=0; trap 'n=$((n+1)); echo $n > $F/got$RANK' INT; trap 'exit 0' USR1; "
          "echo up > $F/up$RANK; while :; do sleep 0.05; done");
  const pid_t supervisor = run_apart(both);
  ASSERT_TRUE(eventually(
      [&] { return !content(folder_ / "up0").empty() && !content(folder_ / "up1").empty(); }));
  // A second one at once is the same request.
  ::kill(supervisor, SIGINT);
  std::this_thread::sleep_for(milliseconds(200));
  ::kill(supervisor, SIGINT);
  for (const char* file : {"got0", "got1"})
    EXPECT_TRUE(eventually([&] { return content(folder_ / file) == "1\n"; })) << file;
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(content(folder_ / "got0"), "1\n");
  ::kill(supervisor, SIGUSR1);
  EXPECT_EQ(code_of(supervisor), 0);
}

TEST_F(Supervisor, InsistingKills) {
  LaunchJob deaf = job(2, "trap '' TERM INT; echo up > $F/up$RANK; while :; do sleep 0.05; done");
  deaf.until_insisting = milliseconds(0);
  deaf.max_restarts = 3;
  const pid_t supervisor = run_apart(deaf);
  ASSERT_TRUE(eventually(
      [&] { return !content(folder_ / "up0").empty() && !content(folder_ / "up1").empty(); }));
  ::kill(supervisor, SIGTERM);
  std::this_thread::sleep_for(milliseconds(100));
  ::kill(supervisor, SIGTERM);
  EXPECT_EQ(code_of(supervisor), 128 + 9) << "and nothing is started again";
}

TEST_F(Supervisor, RanksDieWithTheSupervisor) {
  const pid_t supervisor = run_apart(job(2, "echo $$ > $F/pid$RANK; exec sleep 1000"));
  const pid_t first = number_in("pid0"), second = number_in("pid1");
  ::kill(supervisor, SIGKILL);
  EXPECT_EQ(code_of(supervisor), 128 + 9);
  // Whoever inherits them may not collect them, so their state counts.
  const auto is_dead = [](pid_t process) {
    const std::string stat = content("/proc/" + std::to_string(process) + "/stat");
    return is_gone(process) || stat.find(") Z") != std::string::npos;
  };
  EXPECT_TRUE(eventually([&] { return is_dead(first) && is_dead(second); }));
}

}  // namespace
}  // namespace bev
