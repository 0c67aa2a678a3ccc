#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "launch/rank_binding.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace bev {
namespace {

using test::expect_error;
using Cpus = std::vector<int>;

// Two nodes of four cores with two CPUs each: 0-3 and 8-11, 4-7 and 12-15.
std::vector<Cpu> two_nodes() {
  std::vector<Cpu> topology;
  for (int i = 0; i < 16; ++i)
    topology.push_back({.number = i, .core = i % 8, .node = (i % 8) / 4});
  return topology;
}

std::vector<Cpus> cpus_of_all(const std::vector<std::string>& offers,
                              const std::vector<Cpu>& topology) {
  std::vector<Cpus> all;
  for (size_t i = 0; i < offers.size(); ++i)
    all.push_back(binding_of(static_cast<int>(i), static_cast<int>(i), offers, topology).cpus);
  return all;
}

TEST(CpuList, RoundTrip) {
  EXPECT_EQ(parse_cpu_list("0-3,8"), (Cpus{0, 1, 2, 3, 8}));
  EXPECT_EQ(cpu_list_text(Cpus{0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(parse_cpu_list("5"), Cpus{5});
}

TEST(CpuList, OtherNotationsAreRefused) {
  for (const char* text :
       {"", "a", "1-", "-1", "3-1", "1,1", "2,1", "1,", "1 2", "65536", "0-99999999"})
    expect_error(ErrorKind::Data, "list of CPUs", [&] { parse_cpu_list(text); });
}

TEST(Binding, WholeCoresNodeByNode) {
  const std::vector<std::string> offers(4, "0-15");
  EXPECT_EQ(cpus_of_all(offers, two_nodes()),
            (std::vector<Cpus>{{0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}, {6, 7, 14, 15}}));
  EXPECT_EQ(binding_of(6, 2, offers, two_nodes()).words,
            "rank 6: CPUs 4-5,12-13 of NUMA node 1 (4 threads)");
}

TEST(Binding, MoreRanksThanCoresShareCores) {
  const std::vector<std::string> offers(16, "0-15");
  const auto all = cpus_of_all(offers, two_nodes());
  EXPECT_EQ(all[0], Cpus{0});
  EXPECT_EQ(all[1], Cpus{8});
  EXPECT_EQ(all[15], Cpus{15});
}

TEST(Binding, UnevenDivisionLeavesNothingOut) {
  const auto all = cpus_of_all(std::vector<std::string>(3, "0-15"), two_nodes());
  Cpus together;
  for (const Cpus& cpus : all) {
    EXPECT_GE(cpus.size(), 4U);
    together.insert(together.end(), cpus.begin(), cpus.end());
  }
  std::sort(together.begin(), together.end());
  EXPECT_EQ(cpu_list_text(together), "0-15");
  EXPECT_EQ(all[0], (Cpus{0, 1, 8, 9})) << "a core is not divided";
}

TEST(Binding, MoreRanksThanCpusAreNotBound) {
  const auto binding = binding_of(0, 0, std::vector<std::string>(3, "0-1"), two_nodes());
  EXPECT_TRUE(binding.cpus.empty());
  EXPECT_NE(binding.words.find("not bound: 3 ranks share them"), std::string::npos)
      << binding.words;
}

TEST(Binding, LaunchersBindingStays) {
  const auto binding = binding_of(1, 1, std::vector<std::string>{"0-3", "4-7"}, two_nodes());
  EXPECT_TRUE(binding.cpus.empty());
  EXPECT_EQ(binding.words,
            "rank 1: CPUs 4-7 of NUMA node 1 (4 threads), as the launcher has bound it");
  const auto overlap = binding_of(1, 1, std::vector<std::string>{"0-4", "4-7"}, two_nodes());
  EXPECT_TRUE(overlap.cpus.empty());
  EXPECT_NE(overlap.words.find("overlap"), std::string::npos) << overlap.words;
}

TEST(Binding, OneRankKeepsAll) {
  EXPECT_TRUE(binding_of(0, 0, std::vector<std::string>{"0-15@1"}, two_nodes()).cpus.empty());
}

TEST(Binding, RankIsWhereItsGpuIs) {
  const std::vector<std::string> offers{"0-15@1", "0-15@0", "0-15@1"};
  EXPECT_EQ(cpus_of_all(offers, two_nodes()),
            (std::vector<Cpus>{{4, 5, 12, 13}, {0, 1, 2, 3, 8, 9, 10, 11}, {6, 7, 14, 15}}));
}

TEST(Binding, GpuOnANodeWithoutCpusCountsForNothing) {
  const std::vector<std::string> offers{"0-3@1", "0-3@0"};
  EXPECT_EQ(cpus_of_all(offers, two_nodes()), (std::vector<Cpus>{{0, 1}, {2, 3}}));
}

TEST(Binding, OffersSayWhatIsKnown) {
  EXPECT_EQ(binding_offer(Cpus{0, 1, 4}, 1), "0-1,4@1");
  EXPECT_EQ(binding_offer(Cpus{0, 1, 4}, std::nullopt), "0-1,4");
  EXPECT_EQ(binding_offer(Cpus{0}, -1), "0") << "the system says -1 where it does not know";
}

TEST(Topology, IsReadFromTheSystemsFiles) {
  const test::TemporaryDirectory root;
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  write("node/node0/cpulist", "0-1\n");
  write("node/node3/cpulist", "2-3\n");
  write("node/node4/cpulist", "\n");
  write("node/has_cpu", "0,3\n");
  write("cpu/online", "0-4\n");
  for (const int cpu : {0, 2}) {
    write("cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
          std::to_string(cpu) + "-" + std::to_string(cpu + 1) + "\n");
    write("cpu/cpu" + std::to_string(cpu + 1) + "/topology/thread_siblings_list",
          std::to_string(cpu) + "-" + std::to_string(cpu + 1) + "\n");
  }
  const auto topology = read_topology(root.path());
  ASSERT_EQ(topology.size(), 5U);
  EXPECT_EQ(topology[1].core, 0);
  EXPECT_EQ(topology[3].core, 2);
  EXPECT_EQ(topology[3].node, 3);
  EXPECT_EQ(topology[4].core, 4) << "a CPU that is in no list";
  EXPECT_EQ(numa_nodes_in_use(topology, Cpus{0, 1}), Cpus{0});
  EXPECT_EQ(numa_nodes_in_use(topology, Cpus{1, 2}), (Cpus{0, 3}));
}

TEST(Topology, OfThisMachineKnowsTheAllowedCpus) {
  const Cpus allowed = allowed_cpus();
  ASSERT_FALSE(allowed.empty());
  EXPECT_GE(numa_nodes_in_use(read_topology(), allowed).size(), 1U);
}

TEST(BindRank, BindsTheCallingThread) {
  const Cpus allowed = allowed_cpus();
  if (allowed.size() < 2) GTEST_SKIP() << "one CPU";
  const std::vector<std::string> offers(2, binding_offer(allowed, std::nullopt));
  // In a thread of its own, so that other tests keep their CPUs.
  std::thread([&] {
    const auto free = [](const char*) -> const char* { return nullptr; };
    const Binding binding = bind_rank(1, 1, offers, free);
    EXPECT_LT(binding.cpus.size(), allowed.size());
    EXPECT_EQ(allowed_cpus(), binding.cpus) << binding.words;
  }).join();
  std::thread([&] {
    const auto none = [](const char*) -> const char* { return "none"; };
    EXPECT_TRUE(bind_rank(1, 1, offers, none).cpus.empty());
    EXPECT_EQ(allowed_cpus(), allowed);
  }).join();
  const auto wrong = [](const char*) -> const char* { return "cores"; };
  expect_error(ErrorKind::Usage, "BEVATRON_BIND", [&] { bind_rank(0, 0, offers, wrong); });
}

}  // namespace
}  // namespace bev
