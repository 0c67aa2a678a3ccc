#include <gtest/gtest.h>

#include "app/train/run_start.h"
#include "support/small_checkpoint.h"
#include "support/temporary_directory.h"

namespace bev::app {
namespace {

std::optional<RankEnvironment> restart(int64_t number) {
  RankEnvironment environment;
  environment.size = 2;
  environment.rank = 1;
  environment.restarts = number;
  return environment;
}

class RestartedRun : public ::testing::Test {
 protected:
  RestartedRun() { config_.checkpoint.save = own_; }

  CheckpointConfig after(int64_t number) {
    continue_after_restart(config_, origins_, restart(number));
    return config_.checkpoint;
  }

  test::TemporaryDirectory folder_;
  const std::string own_ = folder_ / "own", other_ = folder_ / "other";
  Config config_;
  Origins origins_;
};

TEST_F(RestartedRun, FirstStartIsAsTheCommandSays) {
  test::small_checkpoint(10, 1).write(own_);
  EXPECT_EQ(after(0).load, "");
  EXPECT_TRUE(origins_.empty());
}

TEST_F(RestartedRun, LoadsItsOwnFolder) {
  const CheckpointConfig c = after(2);
  EXPECT_EQ(c.load, own_) << "also where nothing is there yet: it begins anew in the same folders";
  EXPECT_EQ(origins_.at("checkpoint.load").text, "restart 2");
}

TEST_F(RestartedRun, WithoutCheckpointsNothingChanges) {
  config_.checkpoint.save = "";
  EXPECT_EQ(after(1).load, "");
}

TEST_F(RestartedRun, FolderInTheOutputCounts) {
  config_.checkpoint.save = "";
  config_.checkpoint.interval = 10;
  config_.train.output = folder_ / "run";
  EXPECT_EQ(after(1).load, folder_ / "run/checkpoints");
}

TEST_F(RestartedRun, ForgetsWhatItBeganWith) {
  test::small_checkpoint(10, 1).write(own_);
  config_.checkpoint.load = other_;
  config_.checkpoint.finetune = true;
  config_.checkpoint.step = 7;
  config_.checkpoint.load_optimizer = false;
  const CheckpointConfig c = after(1);
  EXPECT_EQ(c.load, own_);
  EXPECT_FALSE(c.finetune);
  EXPECT_EQ(c.step, 0);
  EXPECT_TRUE(c.load_optimizer) << "the optimizer that it has kept";
}

TEST_F(RestartedRun, BeginsAgainWhereItBegan) {
  config_.checkpoint.load = other_;
  config_.checkpoint.finetune = true;
  const CheckpointConfig c = after(1);
  EXPECT_EQ(c.load, other_);
  EXPECT_TRUE(c.finetune);
}

TEST_F(RestartedRun, WeightsAloneStayAlone) {
  test::small_checkpoint(10, 1, false).write(own_);
  config_.checkpoint.load = other_;
  config_.checkpoint.load_optimizer = false;
  config_.checkpoint.save_optimizer = false;
  EXPECT_FALSE(after(1).load_optimizer);
}

}  // namespace
}  // namespace bev::app
