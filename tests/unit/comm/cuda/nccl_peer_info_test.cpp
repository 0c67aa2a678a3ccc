#include "comm/cuda/nccl_peer_info.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "support/expect_error.h"

namespace bev::cuda {
namespace {

using test::expect_error;

NcclPeerInfo claim(const std::string& machine, const std::string& gpu) {
  return {.world = "1234", .version = "2.28.9", .machine = machine, .gpu = gpu};
}

// The environment is as it was when this goes away.
class HostId {
 public:
  explicit HostId(const char* value) {
    if (const char* before = std::getenv("NCCL_HOSTID")) before_ = before;
    ::setenv("NCCL_HOSTID", value, 1);
  }
  ~HostId() {
    if (before_) {
      ::setenv("NCCL_HOSTID", before_->c_str(), 1);
    } else {
      ::unsetenv("NCCL_HOSTID");
    }
  }

 private:
  std::optional<std::string> before_;
};

// Fails when NCCL is left to refuse a GPU that two ranks have, in words of its own.
TEST(NcclPeerInfo, NameTheRanksOnOneGpu) {
  const std::string text = expect_error(ErrorKind::Usage, "ranks 1 and 3 are on the same GPU", [] {
    check_peer_infos({claim("a", "18"), claim("a", "2a"), claim("b", "18"), claim("a", "2a")});
  });
  EXPECT_NE(text.find("2a of a"), std::string::npos) << text;
}

// Fails when machines are taken for one because their GPUs have the same address.
TEST(NcclPeerInfo, OfTwoMachinesAreApart) {
  EXPECT_NO_THROW(check_peer_infos({claim("a", "18"), claim("b", "18")}));
}

TEST(NcclPeerInfo, OfTwoVersionsAreRefused) {
  NcclPeerInfo other = claim("a", "2a");
  other.version = "2.27.3";
  expect_error(ErrorKind::Usage, "rank 0 has NCCL 2.28.9 and rank 1 has 2.27.3",
               [&] { check_peer_infos({claim("a", "18"), other}); });
}

TEST(NcclPeerInfo, SurviveTheWire) {
  const NcclPeerInfo sent = claim("host 77 with blanks", "0000:18:00.0");
  const NcclPeerInfo got = parse_peer_info(to_text(sent));
  EXPECT_EQ(got.world, sent.world);
  EXPECT_EQ(got.version, sent.version);
  EXPECT_EQ(got.machine, sent.machine);
  EXPECT_EQ(got.gpu, sent.gpu);
}

TEST(NcclPeerInfo, ThatAreCutOffAreRefused) {
  for (const char* text : {"", "1234", "1234\n2.28.9\nhost\n", "1234\n\nhost\n18\n"})
    expect_error(ErrorKind::Comm, "not what this program says", [&] { parse_peer_info(text); });
}

// Fails when processes that pass for machines, as in tests on one GPU, are refused.
TEST(NcclPeerInfo, MachinesGoByTheNameThatNcclIsGiven) {
  const std::string real = machine_name();
  EXPECT_FALSE(real.empty());
  const HostId set("rank-3");
  EXPECT_NE(machine_name(), real);
  EXPECT_NE(machine_name().find("rank-3"), std::string::npos);
}

}  // namespace
}  // namespace bev::cuda
