#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "launch/rank_binding.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

using List = std::vector<std::string>;

TEST(OwnGpu, IsChosenFromThoseThatAreVisible) {
  EXPECT_EQ(visible_gpus(nullptr, 3), (List{"0", "1", "2"}));
  EXPECT_EQ(visible_gpus("5,7", 8), (List{"5", "7"}));
  EXPECT_EQ(visible_gpus("GPU-1a,MIG-2b", 8), (List{"GPU-1a", "MIG-2b"}));
  EXPECT_EQ(visible_gpus("", 8), List{});
}

TEST(OwnGpu, IsFoundInWhatTheDriverSays) {
  const test::TemporaryDirectory folder;
  const auto driver = folder.path() / "gpus", pci = folder.path() / "pci";
  const auto add = [&](const std::string& bus, const std::string& uuid, const std::string& node) {
    std::filesystem::create_directories(driver / bus);
    std::filesystem::create_directories(pci / bus);
    std::ofstream(driver / bus / "information") << "Model: \t X\nGPU UUID: \t " << uuid << "\n";
    std::ofstream(pci / bus / "numa_node") << node << "\n";
  };
  add("0000:91:00.0", "GPU-9", "1");
  add("0000:18:00.0", "GPU-1", "0");
  add("0000:a0:00.0", "GPU-a", "-1");
  const std::vector<MachineGpu> gpus = machine_gpus(driver, pci);
  ASSERT_EQ(gpus.size(), 3u);
  EXPECT_EQ(find_gpu(gpus, "0")->node, 0);
  EXPECT_EQ(find_gpu(gpus, "1")->bus, "0000:91:00.0");
  EXPECT_EQ(find_gpu(gpus, "GPU-9")->node, 1);
  EXPECT_EQ(find_gpu(gpus, "2")->node, std::nullopt);
  EXPECT_EQ(find_gpu(gpus, "3"), nullptr);
  EXPECT_EQ(find_gpu(gpus, "GPU-x"), nullptr);
  EXPECT_TRUE(machine_gpus(folder.path() / "none", pci).empty());
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
  assign_gpu(environment);
  EXPECT_EQ(devices.now(), "6");
  EXPECT_EQ(environment.local_gpus, 3);
}

TEST(OwnGpu, OneProcessKeepsAll) {
  const VisibleDevices devices("4,5,6");
  RankEnvironment environment;
  assign_gpu(environment);
  EXPECT_EQ(devices.now(), "4,5,6");
}

}  // namespace
}  // namespace bev
