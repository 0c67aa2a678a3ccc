// A folder for checkpoints that fails while a training runs: the training says so, goes on and
// tries again; only where the last checkpoint is not saved does it end with an error.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>

#include "base/file.h"
#include "processes/saved_run.h"

namespace bev::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSaved = "successfully saved checkpoint at iteration ";
constexpr const char* kNotSaved = "bevatron: alert: the checkpoint of iteration ";
constexpr const char* kGoesOn = "; the training goes on, and the next attempt is at ";

// Goes on until it is stopped.
const std::vector<std::string>& endless() {
  static const std::vector<std::string> flags{"--save-interval", "2",   "--checkpoint.keep", "2",
                                              "--log-interval",  "100", "--eval-iters",      "0"};
  return flags;
}

// Waits for `more` occurrences than there were.
template <class Text>
bool await_more(Job& job, const Text& text, const std::string& part, size_t more) {
  const size_t wanted = count(text(), part) + more;
  for (const double until = seconds_now() + 60; seconds_now() < until; pause(0.01)) {
    if (count(text(), part) >= wanted) return true;
    if (job.children().front().code) break;
  }
  ADD_FAILURE() << "there is no more '" << part << "'\n" << job.err();
  return false;
}
bool await_saved(Job& job, size_t more) {
  return await_more(job, [&] { return job.out(); }, kSaved, more);
}
bool await_alert(Job& job) {
  return await_more(job, [&] { return job.err(); }, kNotSaved, 1);
}

// Stops it, and expects that it ends well.
void expect_good_end(Job& job, const SavedRun& run) {
  ::kill(job.children().front().process, SIGTERM);
  ASSERT_TRUE(job.await_end(60).has_value()) << job.err();
  EXPECT_EQ(job.children().front().code, 0) << job.err();
  EXPECT_TRUE(fs::exists(run.output() / "model" / "model.safetensors"));
}

class SaveTrouble : public testing::TestWithParam<Ranks> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
};

std::string name_of_ranks(const testing::TestParamInfo<Ranks>& info) { return name_of(info.param); }

// Both names change what they mean, at once.
void exchange(const fs::path& a, const fs::path& b) {
  ASSERT_EQ(::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE), 0);
}

TEST_P(SaveTrouble, AFileInThePlaceOfTheFolder) {
  const SavedRun run(GetParam(), 1'000'000, endless());
  const fs::path other = run.checkpoints().parent_path() / "other";
  Job job(2);
  run.start(job);
  ASSERT_TRUE(await_saved(job, 1));
  std::ofstream(other) << "a file\n";
  exchange(run.checkpoints(), other);
  ASSERT_TRUE(await_alert(job));
  EXPECT_NE(job.err().find(kGoesOn), std::string::npos) << job.err();
  EXPECT_NE(job.err().find(run.checkpoints().string()), std::string::npos) << job.err();
  // What was there before is not touched.
  const int64_t newest = checkpoints_in(other).back();
  // Half a checkpoint that could not be removed.
  fs::create_directories(other / ".iter_0000001.writing");
  exchange(run.checkpoints(), other);
  EXPECT_EQ(read_text(other), "a file\n");
  EXPECT_GE(run.newest_good(), newest);
  ASSERT_TRUE(await_saved(job, 2));
  expect_good_end(job, run);
  EXPECT_GT(run.newest_good(), newest);
  EXPECT_LE(checkpoints_in(run.checkpoints()).size(), 3u);
  expect_no_leftovers(run.checkpoints());
}

TEST_P(SaveTrouble, TheFolderIsDeleted) {
  const SavedRun run(GetParam(), 1'000'000, endless());
  Job job(2);
  run.start(job);
  ASSERT_TRUE(await_saved(job, 1));
  for (int turn = 0; turn < 3; ++turn) {
    // At once: the run may write into it.
    const fs::path gone = run.checkpoints().string() + ".gone" + std::to_string(turn);
    fs::rename(run.checkpoints(), gone);
    // The run may remove files of its draft at the same time: then once more.
    std::error_code error;
    do fs::remove_all(gone, error);
    while (error);
    ASSERT_TRUE(await_saved(job, 2));
  }
  expect_good_end(job, run);
  EXPECT_GT(run.newest_good(), 0);
  expect_no_leftovers(run.checkpoints());
}

TEST_P(SaveTrouble, OnlyTheLastCheckpointDecidesTheExitCode) {
  const SavedRun run(GetParam(), 1'000'000, endless());
  const fs::path other = run.checkpoints().parent_path() / "other";
  Job job(2);
  run.start(job);
  ASSERT_TRUE(await_saved(job, 1));
  std::ofstream(other) << "a file\n";
  exchange(run.checkpoints(), other);
  ASSERT_TRUE(await_alert(job));
  ::kill(job.children().front().process, SIGTERM);
  ASSERT_TRUE(job.await_end(60).has_value()) << job.err();
  const std::string err = job.err();
  EXPECT_EQ(job.children().front().code, 3) << err;
  // The last one does not promise another.
  EXPECT_GE(count(err, "; those before it are as they were"), 1u) << err;
  EXPECT_NE(err.find("the last checkpoint is not saved: "), std::string::npos) << err;
  EXPECT_NE(err.find("stopped by SIGTERM after "), std::string::npos) << err;
  EXPECT_TRUE(fs::exists(run.output() / "model" / "model.safetensors"));
  EXPECT_EQ(read_text(run.checkpoints()), "a file\n");
  exchange(run.checkpoints(), other);
  EXPECT_GT(run.newest_good(), 0);
}

TEST_P(SaveTrouble, ATrackerThatCannotBeWrittenIsOnlyANote) {
  const SavedRun run(GetParam(), 2, {"--eval-iters", "0"});
  const fs::path tracker = run.checkpoints() / "latest_checkpointed_iteration.txt";
  fs::create_directories(tracker / "inside");
  std::string err;
  EXPECT_EQ(run.run({}, &err), 0) << err;
  EXPECT_EQ(count(err, "bevatron: note: cannot write " + tracker.string()), 1u) << err;
  EXPECT_EQ(run.newest_good(), 2);
}

INSTANTIATE_TEST_SUITE_P(Of, SaveTrouble, testing::Values(Ranks::Threads), name_of_ranks);
INSTANTIATE_TEST_SUITE_P(Slow, SaveTrouble, testing::Values(Ranks::Launch), name_of_ranks);

// The disk takes the start of a file only: what `ulimit -f` does, without any rights.
TEST(SaveTroubleOfSize, AFileThatCannotBeWrittenWhole) {
  const SavedRun run(Ranks::Threads, 3,
                     {"--save-interval", "1", "--threads", "1", "--eval-iters", "0"});
  Job job(1);
  // More than the model takes and less than the optimizer's state does, in units of 512 bytes.
  job.start(
      std::vector<std::string>{"sh", "-c", "ulimit -f 1300; exec \"$@\"", "sh"} + run.command(),
      {});
  ASSERT_TRUE(job.await_end(60).has_value()) << job.err();
  EXPECT_EQ(job.children().front().code, 3) << job.err();
  EXPECT_EQ(count(job.err(), kNotSaved), 3u) << job.err();
  EXPECT_EQ(count(job.err(), kGoesOn), 2u) << job.err();
  EXPECT_EQ(count(job.err(), "optimizer-00000-of-00001.safetensors"), 4u) << job.err();
  EXPECT_EQ(count(job.err(), "File too large"), 4u) << job.err();
  EXPECT_TRUE(fs::exists(run.output() / "model" / "model.safetensors"));
  EXPECT_EQ(checkpoints_in(run.checkpoints()).size(), 0u);
  expect_no_leftovers(run.checkpoints());
  // With room again it goes on, here from the start.
  std::string err;
  EXPECT_EQ(run.run({}, &err), 0) << err;
  EXPECT_EQ(run.newest_good(), 3);
}

// A disk of its own under the folder for checkpoints, seen only by the processes of a job.
class PrivateDisk {
 public:
  // Why it cannot be done here; empty: it can.
  static std::string why_not() {
    if (::geteuid() != 0) return "only root can mount a disk";
    if (std::system("unshare -m sh -c 'mount -t tmpfs none /mnt' 2>/dev/null") != 0)
      return "a disk cannot be mounted here";
    return "";
  }

  // `prepare`: commands, in the folder.
  PrivateDisk(Job& job, const SavedRun& run, const std::string& options, const std::string& prepare)
      : job_(job), folder_(run.checkpoints()) {
    fs::create_directories(folder_);
    const std::string script = "mount -t tmpfs -o \"$0\" none \"$1\" && (cd \"$1\" && " + prepare +
                               ") && shift && exec \"$@\"";
    job.start(
        std::vector<std::string>{"unshare", "-m", "sh", "-c", script, options, folder_.string()} +
            run.command(),
        {});
  }
  ~PrivateDisk() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  PrivateDisk(const PrivateDisk&) = delete;
  PrivateDisk& operator=(const PrivateDisk&) = delete;

  // From outside, also after the job has ended. REQUIRES: it is mounted.
  fs::path path() {
    const std::string inside = "/proc/" + process() + "/root" + folder_.string();
    if (descriptor_ < 0) descriptor_ = ::open(inside.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    return "/proc/self/fd/" + std::to_string(descriptor_);
  }

  // "ro" or "rw"; waits while somebody writes.
  void remount(const std::string& how) {
    const std::string command = "nsenter -m -t " + process() + " mount -o remount," + how + " '" +
                                folder_.string() + "' 2>/dev/null";
    for (const double until = seconds_now() + 60; seconds_now() < until; pause(0.002))
      if (std::system(command.c_str()) == 0) return;
    ADD_FAILURE() << "cannot remount " << folder_;
  }

 private:
  std::string process() { return std::to_string(job_.children().front().process); }

  Job& job_;
  fs::path folder_;
  int descriptor_ = -1;
};

class SaveOnDisk : public SaveTrouble {
 protected:
  void SetUp() override {
    SaveTrouble::SetUp();
    if (const std::string why = PrivateDisk::why_not(); !why.empty()) GTEST_SKIP() << why;
  }

  // After the trouble: a later attempt succeeds, and nothing half is left.
  static void expect_recovery(Job& job, PrivateDisk& disk, const SavedRun& run) {
    const fs::path folder = disk.path();
    ASSERT_TRUE(await_saved(job, 2));
    expect_good_end(job, run);
    EXPECT_GE(checkpoints_in(folder).size(), 1u);
    EXPECT_LE(checkpoints_in(folder).size(), 3u);
    expect_no_leftovers(folder);
  }
};

TEST_P(SaveOnDisk, WithoutRoom) {
  const SavedRun run(GetParam(), 1'000'000, endless());
  Job job(2);
  PrivateDisk disk(job, run, "size=8m", ":");
  ASSERT_TRUE(await_saved(job, 1));
  const std::string too_little = " free, but a checkpoint takes 1.", block(1 << 16, ' ');
  // A save that fails half way gives back what it took.
  for (const double until = seconds_now() + 60;
       seconds_now() < until && count(job.err(), too_little) == 0; pause(0.01)) {
    std::ofstream ballast(disk.path() / "ballast", std::ios::app);
    while (ballast << block << std::flush) continue;
  }
  ASSERT_GE(count(job.err(), too_little), 1u) << job.err();
  EXPECT_NE(job.err().find(run.checkpoints().string() + ": the disk has "), std::string::npos)
      << job.err();
  EXPECT_NE(job.err().find(kGoesOn), std::string::npos) << job.err();
  EXPECT_GE(checkpoints_in(disk.path()).size(), 1u);
  fs::remove(disk.path() / "ballast");
  expect_recovery(job, disk, run);
}

// There is room for the bytes, and none for more files: the disk fails in the middle of a save.
TEST_P(SaveOnDisk, WithoutRoomForAllFiles) {
  const SavedRun run(GetParam(), 1'000'000, endless());
  Job job(2);
  PrivateDisk disk(job, run, "size=16m,nr_inodes=60",
                   "mkdir ballast && for i in $(seq 52); do : >ballast/$i || break; done");
  ASSERT_TRUE(await_alert(job));
  EXPECT_NE(job.err().find("No space left on device"), std::string::npos) << job.err();
  EXPECT_NE(job.err().find(kGoesOn), std::string::npos) << job.err();
  EXPECT_EQ(checkpoints_in(disk.path()).size(), 0u);
  fs::remove_all(disk.path() / "ballast");
  expect_recovery(job, disk, run);
}

TEST_P(SaveOnDisk, ReadOnlyForAWhile) {
  const SavedRun run(GetParam(), 1'000'000, endless());
  Job job(2);
  PrivateDisk disk(job, run, "size=16m", ":");
  ASSERT_TRUE(await_saved(job, 1));
  disk.remount("ro");
  const std::vector<int64_t> before = checkpoints_in(disk.path());
  ASSERT_TRUE(await_alert(job));
  EXPECT_NE(job.err().find("Read-only file system"), std::string::npos) << job.err();
  EXPECT_EQ(checkpoints_in(disk.path()), before);
  disk.remount("rw");
  expect_recovery(job, disk, run);
}

INSTANTIATE_TEST_SUITE_P(Of, SaveOnDisk, testing::Values(Ranks::Threads), name_of_ranks);
INSTANTIATE_TEST_SUITE_P(Slow, SaveOnDisk, testing::Values(Ranks::Launch), name_of_ranks);

}  // namespace
}  // namespace bev::test
