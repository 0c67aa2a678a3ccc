#include "train/control_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

namespace fs = std::filesystem;

using Kind = ControlRequest::Kind;
using test::expect_error;

// A folder whose clock the test sets.
class ControlFolderTest : public testing::Test {
 protected:
  ControlFolderTest() { control_.prepare(); }

  void put(const std::string& name, const std::string& text = "") {
    std::ofstream(folder_ / name) << text;
  }
  std::vector<Kind> kinds() {
    std::vector<Kind> kinds;
    for (const ControlRequest& request : control_.poll()) kinds.push_back(request.kind);
    return kinds;
  }
  // A note about each file that means nothing.
  std::string notes() {
    control_.poll();
    std::string all;
    for (const std::string& note : control_.take_notes()) all += note + "\n";
    return all;
  }
  // After the folder has been still for long: what changes now has another time.
  void settle() {
    control_.poll();
    now_ += 100;
    control_.poll();
  }

  test::TemporaryDirectory run_;
  fs::path folder_ = run_ / "control";
  double now_ = 1000;
  ControlFolder control_{folder_, [this] { return now_; }};
};

TEST_F(ControlFolderTest, NamesTouchNothing) {
  const test::TemporaryDirectory dir;
  ControlFolder none(dir / "control");
  EXPECT_TRUE(none.poll().empty());
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST_F(ControlFolderTest, SaysWhatCanBeAskedFor) {
  const std::string text = read_text(folder_ / "README");
  for (const char* word : {"touch save", "touch stop", "touch eval", "echo 0.5 > lr"})
    EXPECT_NE(text.find(word), std::string::npos) << word;
  EXPECT_TRUE(kinds().empty());
  EXPECT_EQ(notes(), "");
}

TEST_F(ControlFolderTest, RequestsStayUntilTheyAreTaken) {
  settle();
  EXPECT_TRUE(kinds().empty());
  put("save");
  put("stop", "any content");
  EXPECT_EQ(kinds(), (std::vector{Kind::Save, Kind::Stop}));
  settle();
  EXPECT_EQ(kinds(), (std::vector{Kind::Save, Kind::Stop}));
  const ControlRequest save = control_.poll().front();
  EXPECT_FALSE(save.by.empty());
  EXPECT_GT(save.time, 1'000'000'000);
  control_.take(save);
  EXPECT_FALSE(fs::exists(folder_ / "save"));
  EXPECT_EQ(kinds(), std::vector{Kind::Stop});
  put("eval");
  EXPECT_EQ(kinds(), (std::vector{Kind::Eval, Kind::Stop}));
}

TEST_F(ControlFolderTest, OneThatIsWithdrawnIsNoLongerAskedFor) {
  put("stop");
  EXPECT_EQ(kinds(), std::vector{Kind::Stop});
  fs::remove(folder_ / "stop");
  EXPECT_TRUE(kinds().empty());
}

TEST_F(ControlFolderTest, OwnersAreNamed) {
  put("save");
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown((folder_ / "save").c_str(), 4242424, 0), 0);
  EXPECT_EQ(control_.poll().front().by, "user 4242424");
  ASSERT_EQ(::chown((folder_ / "save").c_str(), 0, 0), 0);
  now_ += 0.1;
  EXPECT_EQ(control_.poll().front().by, "root");
}

TEST_F(ControlFolderTest, UpperAndLowerCaseAreAlike) {
  put("STOP");
  put("stop");
  EXPECT_EQ(kinds(), std::vector{Kind::Stop});
  control_.take(control_.poll().front());
  EXPECT_TRUE(kinds().empty());
  EXPECT_FALSE(fs::exists(folder_ / "STOP"));
  EXPECT_FALSE(fs::exists(folder_ / "stop"));
}

TEST_F(ControlFolderTest, AFileOfTheSameTickIsSeen) {
  const auto time = fs::last_write_time(folder_);
  EXPECT_TRUE(kinds().empty());
  put("save");
  fs::last_write_time(folder_, time);
  now_ += 1;
  EXPECT_EQ(kinds(), std::vector{Kind::Save});
}

TEST_F(ControlFolderTest, AFolderThatDidNotChangeIsNotRead) {
  settle();
  const auto time = fs::last_write_time(folder_);
  put("save");
  fs::last_write_time(folder_, time);
  EXPECT_TRUE(kinds().empty());
  put("eval");
  EXPECT_EQ(kinds(), (std::vector{Kind::Eval, Kind::Save}));
}

TEST_F(ControlFolderTest, TheFactorOfTheLearningRate) {
  put("lr", "0.5\n");
  const std::vector<ControlRequest> requests = control_.poll();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].kind, Kind::Rate);
  EXPECT_EQ(requests[0].rate, 0.5);
  control_.take(requests[0]);
  EXPECT_FALSE(fs::exists(folder_ / "lr"));
  EXPECT_EQ(notes(), "");
}

TEST_F(ControlFolderTest, AFactorCountsWhenItIsWhole) {
  put("lr");
  EXPECT_TRUE(kinds().empty());
  settle();
  EXPECT_NE(notes().find("\"lr\" is empty; legal is a factor"), std::string::npos);
  put("lr", "0.");
  EXPECT_TRUE(kinds().empty()) << "half written";
  put("lr", "0.25\n");
  ASSERT_EQ(kinds(), std::vector{Kind::Rate});
  EXPECT_EQ(control_.poll().front().rate, 0.25);
  // printf writes no newline.
  put("lr", " 1e2");
  EXPECT_TRUE(kinds().empty());
  now_ += 1.9;
  EXPECT_TRUE(kinds().empty());
  now_ += 0.2;
  ASSERT_EQ(kinds(), std::vector{Kind::Rate});
  EXPECT_EQ(control_.poll().front().rate, 100);
  EXPECT_EQ(notes(), "");
}

TEST_F(ControlFolderTest, WhatIsNoFactorIsSaidOnce) {
  for (const char* text : {"-1\n", "1000.5\n", "nan\n", "inf\n", "half\n", "0,5\n", "1 2\n"}) {
    put("lr", text);
    now_ += 10;
    EXPECT_NE(notes().find("a factor of the learning rate from 0 to 1000"), std::string::npos)
        << text;
    EXPECT_EQ(notes(), "") << text;
    now_ += 100;
    EXPECT_EQ(notes(), "") << text;
    EXPECT_TRUE(kinds().empty()) << text;
  }
  for (const auto& [text, rate] : {std::pair{"0\n", 0.0}, {"1000\n", 1000.0}, {"1\r\n", 1.0}}) {
    put("lr", text);
    ASSERT_EQ(kinds(), std::vector{Kind::Rate}) << text;
    EXPECT_EQ(control_.poll().front().rate, rate);
  }
}

TEST_F(ControlFolderTest, AFactorThatIsWrittenAnewIsNotRemovedUnread) {
  put("lr", "0.5\n");
  const ControlRequest first = control_.poll().front();
  put("lr", "0.125\n");
  control_.take(first);
  ASSERT_EQ(kinds(), std::vector{Kind::Rate});
  EXPECT_EQ(control_.poll().front().rate, 0.125);
}

TEST_F(ControlFolderTest, NamesThatMeanNothingAreSaidOnce) {
  put("stpo");
  put("quit\x1b[2J");
  put(".hidden");
  put("save~");
  put("readme.txt");
  const std::string all = notes();
  EXPECT_NE(all.find("\"stpo\" means nothing; legal are save, stop, eval and lr: did you mean "
                     "stop?"),
            std::string::npos)
      << all;
  EXPECT_NE(all.find("\"quit\\u001b[2J\" means nothing"), std::string::npos) << all;
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 2);
  EXPECT_EQ(notes(), "");
  put("stpo", "again");
  settle();
  EXPECT_NE(notes(), "");
}

TEST_F(ControlFolderTest, WhatIsNoFileIsNeverFollowed) {
  put(".target", "0.5\n");
  fs::create_symlink(folder_ / ".target", folder_ / "lr");
  fs::create_directory(folder_ / "stop");
  ASSERT_EQ(::mkfifo((folder_ / "save").c_str(), 0600), 0);
  EXPECT_TRUE(kinds().empty());
  now_ += 10;
  EXPECT_TRUE(kinds().empty());
  const std::string all = notes();
  EXPECT_NE(all.find("\"lr\" is a symbolic link and means nothing"), std::string::npos) << all;
  EXPECT_NE(all.find("\"stop\" is a folder"), std::string::npos) << all;
  EXPECT_NE(all.find("\"save\" is a pipe"), std::string::npos) << all;
}

TEST_F(ControlFolderTest, OneThatCannotBeRemovedCountsOnce) {
  put("save");
  const ControlRequest save = control_.poll().front();
  // The rights of the folder do not count for root, who becomes somebody else for a moment.
  const bool is_root = ::geteuid() == 0;
  fs::permissions(run_.path(), fs::perms(0755));
  fs::permissions(folder_, fs::perms(0555));
  ASSERT_EQ(::seteuid(is_root ? 65534 : ::geteuid()), 0);
  control_.take(save);
  ASSERT_EQ(::seteuid(is_root ? 0 : ::geteuid()), 0);
  fs::permissions(folder_, fs::perms(0755));
  EXPECT_NE(notes().find("\"save\" cannot be removed: Permission denied"), std::string::npos);
  EXPECT_TRUE(kinds().empty());
  now_ += 100;
  EXPECT_TRUE(kinds().empty());
  put("save", "changed");
  EXPECT_EQ(kinds(), std::vector{Kind::Save});
}

TEST_F(ControlFolderTest, OfManyFilesSomeAreRead) {
  for (int i = 0; i < 250; ++i) put("a" + std::to_string(i));
  control_.poll();
  EXPECT_EQ(control_.take_notes().size(), 200u);
}

TEST_F(ControlFolderTest, IsForTheGroupWhereTheRunIs) {
  const auto mode = [](const fs::path& path) {
    struct stat info{};
    ::stat(path.c_str(), &info);
    return info.st_mode & 0777;
  };
  const test::TemporaryDirectory dir;
  fs::permissions(dir.path(), fs::perms(0775));
  ControlFolder(dir / "open").prepare();
  EXPECT_EQ(mode(dir / "open") & 0070u, 0070u);
  EXPECT_EQ(mode(dir / "open") & 0002u, 0u);
  fs::permissions(dir.path(), fs::perms(0700));
  const mode_t old = ::umask(022);
  ControlFolder(dir / "closed").prepare();
  ::umask(old);
  EXPECT_EQ(mode(dir / "closed") & 0022u, 0u);
}

TEST_F(ControlFolderTest, IsMadeAgainWithoutHarm) {
  put("stop");
  control_.prepare();
  EXPECT_EQ(kinds(), std::vector{Kind::Stop});
  const test::TemporaryDirectory dir;
  std::ofstream(dir / "control") << "a file";
  expect_error(ErrorKind::Data, "cannot make the folder",
               [&] { ControlFolder(dir / "control").prepare(); });
}

TEST_F(ControlFolderTest, AFolderThatGoesAwayAsksForNothing) {
  put("stop");
  EXPECT_EQ(kinds(), std::vector{Kind::Stop});
  fs::remove_all(folder_);
  EXPECT_TRUE(kinds().empty());
  control_.prepare();
  put("save");
  EXPECT_EQ(kinds(), std::vector{Kind::Save});
}

}  // namespace
}  // namespace bev
