// Ranks that were started differently, or that cannot start, say what it is, once.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "processes/job.h"

namespace bev::test {
namespace {

class Mismatch : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(Start::Hand); !why.empty()) GTEST_SKIP() << why;
  }
  // Token files with 60,000 ids below 97 in `folder`/data; `last`: the last id.
  static void write_data(const std::filesystem::path& folder, int last) {
    std::filesystem::create_directories(folder);
    {
      std::ofstream text(folder / "text");
      for (int line = 1; line <= 20'000; ++line)
        text << line * 7 % 97 << ' ' << line * 13 % 97 << ' ' << line * 29 % 97 << '\n';
      text << last << '\n';
    }
    const std::string command = std::string(BEV_PROGRAM) + " preprocess --input " +
                                (folder / "text").string() + " --output-prefix " +
                                (folder / "data").string() +
                                " --tokenizer-type NullTokenizer --vocab-size 99 >/dev/null 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  static std::vector<std::string> with_data() {
    return {"--data.mock", "false", "--data-path", "data", "--global-batch-size", "2"};
  }
};

TEST_F(Mismatch, OfTheConfigurationIsShownByLines) {
  Job job(2);
  job.train_rank(0, {});
  job.train_rank(1, {"--lr", "2e-3"});
  ASSERT_TRUE(job.await_end(20)) << job.err();
  for (const Child& child : job.children()) EXPECT_EQ(child.code, 2) << job.err();
  EXPECT_EQ(count(job.err(), "the configuration is not the same on all ranks: 1 of 2 differ"), 1)
      << job.err();
  EXPECT_EQ(count(job.err(), "\n  - lr = 0.001\n"), 1) << job.err();
  EXPECT_EQ(count(job.err(), "\n  + lr = 0.002\n"), 1) << job.err();
  // Nothing else differs.
  EXPECT_EQ(count(job.err(), "\n  - ") + count(job.err(), "\n  + "), 2) << job.err();
  EXPECT_NE(job.err().find("rank 0 says how"), std::string::npos) << job.err();
}

TEST_F(Mismatch, OfTheDataIsFoundBehindEqualNames) {
  Job job(2);
  const auto here = job.folder() / "a", there = job.folder() / "b";
  write_data(here, 1);
  write_data(there, 2);
  job.train_rank(0, with_data(), here);
  job.train_rank(1, with_data(), there);
  ASSERT_TRUE(job.await_end(20)) << job.err();
  for (const Child& child : job.children()) EXPECT_EQ(child.code, 2) << job.err();
  EXPECT_EQ(count(job.err(), "the data is not the same on all ranks: 1 of 2 differ"), 1)
      << job.err();
}

TEST_F(Mismatch, OfWhatIsThereIsSaidByTheRankThatMissesIt) {
  Job job(2);
  const auto here = job.folder() / "a", there = job.folder() / "b";
  write_data(here, 1);
  std::filesystem::create_directories(there);
  job.train_rank(0, with_data(), here);
  job.train_rank(1, with_data(), there);
  ASSERT_TRUE(job.await_end(20)) << job.err();
  for (const Child& child : job.children()) EXPECT_EQ(child.code, 3) << job.err();
  EXPECT_EQ(count(job.err(), "rank 1 of 2 (host "), 1) << job.err();
  EXPECT_EQ(count(job.err(), "data.idx"), 1) << job.err();
  // In the logs too.
  EXPECT_NE(job.log(0).find("rank 1 of 2 (host "), std::string::npos) << job.log(0);
  EXPECT_NE(job.log(1).find("data.idx"), std::string::npos) << job.log(1);
}

// Somebody writes tokens that are not in the vocabulary into one rank's own copy of the file.
TEST_F(Mismatch, OfASampleIsSaidWithTheRankThatReadsIt) {
  Job job(2);
  const auto here = job.folder() / "a", there = job.folder() / "b";
  write_data(here, 1);
  write_data(there, 1);
  job.train_rank(0, with_data(), here);
  job.train_rank(1, with_data(), there);
  ASSERT_TRUE(job.await_training());
  {
    std::fstream file(there / "data.bin", std::ios::in | std::ios::out | std::ios::binary);
    for (int at = 20'000; at < 80'000; at += 200) {
      file.seekp(at);
      file.write("\x90\x01", 2);
    }
  }
  ASSERT_TRUE(job.await_end(30)) << job.err();
  for (const Child& child : job.children()) EXPECT_EQ(child.code, 3) << job.err();
  EXPECT_GE(count(job.err(), "error: rank 1: "), 1u) << job.err();
  EXPECT_NE(job.err().find(" is 400, but the vocabulary"), std::string::npos) << job.err();
  EXPECT_NE(job.log(1).find(" is 400, but the vocabulary"), std::string::npos) << job.log(1);
}

TEST_F(Mismatch, OfTheDiskIsSaidInTheWordsOfTheRank) {
  Job job(2);
  job.train(Start::Hand, {"--global-batch-size", "2"});
  ASSERT_TRUE(job.await_training());
  // The model has 440 kB.
  const std::string limit =
      "prlimit --fsize=100000 --pid " + std::to_string(job.process_of(0)) + " >/dev/null";
  if (std::system(limit.c_str()) != 0) GTEST_SKIP() << "there is no prlimit";
  job.signal(1, SIGTERM);
  ASSERT_TRUE(job.await_end(20)) << job.err();
  EXPECT_EQ(job.children()[0].code, 3) << job.err();
  EXPECT_EQ(job.children()[1].code, 5) << job.err();
  EXPECT_EQ(count(job.err(), "bevatron: error: rank 1: rank 0 (host "), 1) << job.err();
  EXPECT_EQ(count(job.err(), "model.safetensors"), 2) << job.err();
  EXPECT_EQ(count(job.err(), "File too large"), 2) << job.err();
}

TEST_F(Mismatch, OfAFlagIsSaidOnceByARankOfALauncher) {
  Job job(4);
  job.train(Start::Launch, {"--no-such-flag", "1"});
  ASSERT_TRUE(job.await_end(20)) << job.err();
  EXPECT_EQ(job.children()[0].code, 2);
  EXPECT_EQ(count(job.err(), "there is no flag --no-such-flag"), 1) << job.err();
  EXPECT_EQ(count(job.err(), "legal: "), 1) << job.err();
}

TEST_F(Mismatch, OfAFlagIsSaidOnceUnderMpirun) {
  if (const std::string why = why_not(Start::Mpirun); !why.empty()) GTEST_SKIP() << why;
  Job job(3);
  job.train(Start::Mpirun, {"--no-such-flag", "1"});
  ASSERT_TRUE(job.await_end(20)) << job.err();
  EXPECT_EQ(count(job.err(), "there is no flag --no-such-flag"), 1) << job.err();
}

// Nobody knows whether the first rank sees the same.
TEST_F(Mismatch, OfAFlagIsSaidShortlyByEveryRankByHand) {
  Job job(2);
  job.train_rank(0, {"--parallel.timeout_minutes", "0.05"});
  job.train_rank(1, {"--no-such-flag", "1"});
  ASSERT_TRUE(job.await_end(20)) << job.err();
  EXPECT_EQ(job.children()[0].code, 5) << job.err();
  EXPECT_EQ(job.children()[1].code, 2) << job.err();
  EXPECT_EQ(count(job.err(), "error: rank 1: there is no flag --no-such-flag"), 1) << job.err();
}

}  // namespace
}  // namespace bev::test
