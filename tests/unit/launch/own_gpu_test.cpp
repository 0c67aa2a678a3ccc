#include "launch/own_gpu.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace bev {
namespace {

using List = std::vector<std::string>;

TEST(OwnGpu, IsChosenFromThoseThatAreVisible) {
  EXPECT_EQ(visible_gpus(nullptr, 3), (List{"0", "1", "2"}));
  EXPECT_EQ(visible_gpus("5,7", 8), (List{"5", "7"}));
  EXPECT_EQ(visible_gpus("GPU-1a,MIG-2b", 8), (List{"GPU-1a", "MIG-2b"}));
  EXPECT_EQ(visible_gpus("", 8), List{});
}

// The variable that CUDA reads, put back at the end.
class VisibleDevices {
 public:
  explicit VisibleDevices(const char* value) {
    if (const char* now = std::getenv(kName)) before_ = now;
    ::setenv(kName, value, 1);
  }
  ~VisibleDevices() { before_.empty() ? ::unsetenv(kName) : ::setenv(kName, before_.c_str(), 1); }
  std::string now() const { return std::getenv(kName); }

 private:
  static constexpr const char* kName = "CUDA_VISIBLE_DEVICES";
  std::string before_;
};

TEST(OwnGpu, EachRankOfAMachineTakesItsOwn) {
  const VisibleDevices devices("4,5,6");
  RankEnvironment environment;
  environment.local_rank = 2;
  environment.local_size = 3;
  take_own_gpu(environment);
  EXPECT_EQ(devices.now(), "6");
  EXPECT_EQ(environment.local_gpus, 3);
}

TEST(OwnGpu, OneProcessKeepsAll) {
  const VisibleDevices devices("4,5,6");
  RankEnvironment environment;
  take_own_gpu(environment);
  EXPECT_EQ(devices.now(), "4,5,6");
}

}  // namespace
}  // namespace bev
