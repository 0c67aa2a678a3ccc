// The CPUs of this machine, their cores and NUMA nodes, and which of them a thread may use.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bev {

// "0-3,8" <-> 0, 1, 2, 3, 8: ascending, each once. Reading: a Data error for anything else, and for
// CPUs above 65535.
std::vector<int> parse_cpu_list(std::string_view text);
std::string cpu_list_text(std::span<const int> cpus);

struct Cpu {
  int number = 0;
  int core = 0;  // the first of the CPUs that share a core
  int node = 0;  // of NUMA
};

// Sorted by number. A CPU without entries in sysfs counts as a core of node 0.
std::vector<Cpu> read_topology(const std::filesystem::path& root = "/sys/devices/system");

// The CPUs with these numbers; a number that the topology lacks counts as a core of node 0.
std::vector<Cpu> cpus_in(std::span<const Cpu> topology, std::span<const int> cpus);

// The NUMA nodes that have one of these CPUs, ascending.
std::vector<int> numa_nodes_in_use(std::span<const Cpu> topology, std::span<const int> cpus);

// Those that the calling thread may run on.
std::vector<int> allowed_cpus();

// The calling thread runs on these CPUs from now on, and so do threads that it starts later. False,
// with errno, when the system refuses.
bool bind_thread(std::span<const int> cpus);

}  // namespace bev
