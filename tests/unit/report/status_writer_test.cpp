#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "report/status_file.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

using test::TemporaryDirectory;

void pause_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// Whether it becomes true within so many seconds.
template <class F>
bool comes_true(double seconds, F&& f) {
  const double end = seconds_now() + seconds;
  do {
    if (f()) return true;
    pause_for(0.002);
  } while (seconds_now() < end);
  return f();
}

TEST(StatusWriter, IsThereAtOnceWithWhoWritesIt) {
  const TemporaryDirectory dir;
  const StatusWriter file(dir / "status.json", {.iterations = 7});
  ASSERT_TRUE(comes_true(5, [&] { return read_status(dir / "status.json").has_value(); }));
  const RunStatus status = *read_status(dir / "status.json");
  EXPECT_EQ(status.phase, RunPhase::Starting);
  EXPECT_EQ(status.iterations, 7);
  EXPECT_EQ(status.process, own_process());
  EXPECT_FALSE(status.host.empty());
  EXPECT_NEAR(status.started, unix_seconds(), 10);
  EXPECT_NEAR(status.updated, unix_seconds(), 10);
  EXPECT_GT(status.host_bytes, 0);
}

TEST(StatusWriter, TheLastStateIsWrittenAndNothingElseStays) {
  const TemporaryDirectory dir;
  {
    StatusWriter file(dir / "status.json", {});
    file.change([](RunStatus& s) {
      s.phase = RunPhase::Ended;
      s.ending = kComplete;
      s.iteration = 9;
    });
    EXPECT_EQ(file.current().iteration, 9);
    EXPECT_FALSE(file.failure());
  }
  const RunStatus status = *read_status(dir / "status.json");
  EXPECT_EQ(status.phase, RunPhase::Ended);
  EXPECT_EQ(status.ending, "complete");
  EXPECT_EQ(status.iteration, 9);
  for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
    EXPECT_EQ(entry.path().filename(), "status.json");
}

TEST(StatusWriter, ARunThatSaysNothingAboutItsEndHasFailed) {
  const TemporaryDirectory dir;
  {
    StatusWriter file(dir / "status.json", {});
    file.change([](RunStatus& s) { s.phase = RunPhase::Training; });
  }
  EXPECT_EQ(read_status(dir / "status.json")->phase, RunPhase::Failed);
}

// Of the times below, only the one in question is short.
constexpr double kNever = 1000;

TEST(StatusWriter, AnotherPhaseIsWrittenSoon) {
  const TemporaryDirectory dir;
  StatusWriter file(dir / "status.json", {}, {.period = kNever, .heartbeat = kNever});
  for (const RunPhase phase : {RunPhase::Training, RunPhase::Saving, RunPhase::Training}) {
    file.change([&](RunStatus& s) { s.phase = phase; });
    EXPECT_TRUE(comes_true(5, [&] {
      const auto status = read_status(dir / "status.json");
      return status && status->phase == phase;
    }));
  }
}

TEST(StatusWriter, OrdinaryChangesWaitForTheirPeriod) {
  const TemporaryDirectory dir;
  StatusWriter file(dir / "status.json", {}, {.period = 0.2, .heartbeat = kNever});
  std::set<int64_t> written;
  const double end = seconds_now() + 0.7;
  for (int64_t i = 1; seconds_now() < end; ++i) {
    file.change([&](RunStatus& s) { s.iteration = i; });
    if (const auto status = read_status(dir / "status.json")) written.insert(status->iteration);
  }
  EXPECT_GE(written.size(), 2u);
  EXPECT_LE(written.size(), 6u);
}

TEST(StatusWriter, WithoutAnyChangeItStillGivesSignsOfLife) {
  const TemporaryDirectory dir;
  const StatusWriter file(dir / "status.json", {}, {.least_pause = 0.01, .heartbeat = 0.05});
  std::set<double> updated;
  EXPECT_TRUE(comes_true(5, [&] {
    if (const auto status = read_status(dir / "status.json")) updated.insert(status->updated);
    return updated.size() > 3;
  }));
}

TEST(StatusWriter, NotesSinceWhenPhaseAndIterationAreWhatTheyAre) {
  const TemporaryDirectory dir;
  StatusWriter file(dir / "status.json", {});
  const RunStatus first = file.current();
  pause_for(0.01);
  file.change([](RunStatus& s) { s.loss = 1; });
  EXPECT_EQ(file.current().phase_since, first.phase_since);
  EXPECT_EQ(file.current().iteration_time, first.iteration_time);
  file.change([](RunStatus& s) { s.iteration = 1; });
  EXPECT_EQ(file.current().phase_since, first.phase_since);
  EXPECT_GT(file.current().iteration_time, first.iteration_time);
  file.change([](RunStatus& s) { s.phase = RunPhase::Training; });
  EXPECT_GT(file.current().phase_since, first.phase_since);
}

TEST(StatusWriter, ADiskThatFailsEndsNothingAndMayRecover) {
  const TemporaryDirectory dir;
  const std::filesystem::path folder = dir / "run";
  StatusWriter file(folder / "status.json", {}, {.heartbeat = 0.05});
  ASSERT_TRUE(comes_true(5, [&] { return file.failure().has_value(); }));
  EXPECT_NE(file.failure()->find("status.json: No such file or directory"), std::string::npos)
      << *file.failure();
  file.change([](RunStatus& s) { s.iteration = 3; });
  std::filesystem::create_directory(folder);
  EXPECT_TRUE(comes_true(5, [&] { return !file.failure().has_value(); }));
  EXPECT_EQ(read_status(folder / "status.json")->iteration, 3);
}

TEST(StatusWriter, AFullDiskIsAFailureToo) {
  const TemporaryDirectory dir;
  const std::filesystem::path file = dir / "status.json";
  const std::string draft = file.string() + ".partial." + std::to_string(::getpid());
  std::filesystem::create_symlink("/dev/full", draft);
  const StatusWriter status(file, {}, {.period = kNever, .heartbeat = kNever});
  ASSERT_TRUE(comes_true(5, [&] { return status.failure().has_value(); }));
  EXPECT_NE(status.failure()->find("No space left"), std::string::npos) << *status.failure();
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(StatusWriter, IsChangedFromAnyThreadAtLittleCost) {
  const TemporaryDirectory dir;
  StatusWriter file(dir / "status.json", {});
  const double begin = seconds_now();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) file.change([](RunStatus& s) { ++s.skipped; });
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(file.current().skipped, 80000);
  // A file written each time would take longer by far.
  EXPECT_LT(seconds_now() - begin, 1.5);
}

}  // namespace
}  // namespace bev
