#include "launch/slurm_lists.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace bev {
namespace {

using test::expect_error;
using Hosts = std::vector<std::string>;

Hosts hosts(std::string_view list) { return slurm_hosts(list, "SLURM_STEP_NODELIST"); }

TEST(SlurmHosts, NamesAndRanges) {
  EXPECT_EQ(hosts("alone"), Hosts{"alone"});
  EXPECT_EQ(hosts("node[01-03,7],gpu-b2"),
            (Hosts{"node01", "node02", "node03", "node7", "gpu-b2"}));
  EXPECT_EQ(hosts("n[098-101].lan"), (Hosts{"n098.lan", "n099.lan", "n100.lan", "n101.lan"}));
  EXPECT_EQ(hosts("r[0-1]n[5-6]"), (Hosts{"r0n5", "r0n6", "r1n5", "r1n6"}));
}

TEST(SlurmHosts, OtherNotationsAreRefused) {
  for (const char* list :
       {"",     ",",     "a,",     ",a",     "a,,b",   "n[",     "n[]",
        "n[1",  "n[1-]", "n[-1]",  "n[1,]",  "n[3-1]", "n]",     "n[1]]",
        "n[a]", "n 1",   "n[1]\n", "n[0x1]", "a;b",    "n[[1]]", "n[1234567890]"})
    expect_error(ErrorKind::Usage, "SLURM_STEP_NODELIST", [&] { hosts(list); });
}

TEST(SlurmHosts, SizesAreBounded) {
  EXPECT_EQ(hosts("n[1-65536]").size(), 65536U);
  expect_error(ErrorKind::Usage, "65536", [] { hosts("n[1-65537]"); });
  expect_error(ErrorKind::Usage, "65536", [] { hosts("n[0-999999999]"); });
  expect_error(ErrorKind::Usage, "65536", [] { hosts("n[0-999][0-999]"); });
  expect_error(ErrorKind::Usage, "1 MiB", [] { hosts(std::string(2000000, 'a')); });
  expect_error(ErrorKind::Usage, "255", [] { hosts(std::string(256, 'a')); });
}

TEST(SlurmCounts, RepeatedAndSingle) {
  EXPECT_EQ(slurm_counts("2(x3),1", "V"), (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(slurm_counts("8", "V"), std::vector<int>{8});
}

TEST(SlurmCounts, OtherNotationsAreRefused) {
  for (const char* list : {"", "2(", "2(x", "2(x3", "2(3)", "(x3)", "2,", "-1", "2(x99999)", "2 "})
    expect_error(ErrorKind::Usage, "V is", [&] { slurm_counts(list, "V"); });
}

}  // namespace
}  // namespace bev
