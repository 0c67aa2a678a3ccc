#include "comm/nccl_world.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace bev {
namespace {

// Runs `question` in a process of its own, whose environment it may change.
template <class F>
bool holds_elsewhere(F&& question) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(question() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool is_set(const char* name, const std::string& value) {
  const char* found = std::getenv(name);
  return found != nullptr && found == value;
}

// Fails when a machine without NCCL gets no sentence, or one with it is refused.
TEST(NcclWorld, SaysWhyThereIsNoNccl) {
  const std::string why = why_no_nccl();
  EXPECT_TRUE(why.empty() || why.find("NCCL") != std::string::npos) << why;
}

// Fails when NCCL may take eth10 where eth1 was meant.
TEST(NcclWorld, NamesOneInterface) {
  EXPECT_TRUE(holds_elsewhere([] {
    ::unsetenv("NCCL_SOCKET_IFNAME");
    ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
    choose_nccl_interface("eth1");
    widen_gpu_queues();
    return is_set("NCCL_SOCKET_IFNAME", "=eth1") && is_set("CUDA_DEVICE_MAX_CONNECTIONS", "32");
  }));
}

// Fails when what a person has set is overwritten.
TEST(NcclWorld, LeavesWhatIsSet) {
  EXPECT_TRUE(holds_elsewhere([] {
    ::setenv("NCCL_SOCKET_IFNAME", "ib", 1);
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
    choose_nccl_interface("eth1");
    widen_gpu_queues();
    return is_set("NCCL_SOCKET_IFNAME", "ib") && is_set("CUDA_DEVICE_MAX_CONNECTIONS", "4");
  }));
}

}  // namespace
}  // namespace bev
