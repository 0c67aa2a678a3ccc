#include "base/cpu_topology.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "base/check.h"
#include "base/number_list.h"
#include "base/system_file.h"

namespace bev {

namespace {

constexpr int kMostCpus = 65536;

// cpu_set_t for any number of CPUs, empty.
struct CpuSet {
  explicit CpuSet(int count) : set(CPU_ALLOC(count)), bytes(CPU_ALLOC_SIZE(count)) {
    CPU_ZERO_S(bytes, set);
  }
  ~CpuSet() { CPU_FREE(set); }
  CpuSet(const CpuSet&) = delete;
  CpuSet& operator=(const CpuSet&) = delete;

  cpu_set_t* set;
  size_t bytes;
};

}  // namespace

std::vector<int> parse_cpu_list(std::string_view text) {
  const auto ranges = parse_ranges(text);
  bool is_good = ranges.has_value();
  std::vector<int> cpus;
  for (size_t i = 0; is_good && i < ranges->size(); ++i) {
    const auto [first, last] = (*ranges)[i];
    is_good = last < kMostCpus && (cpus.empty() || first > cpus.back());
    for (int64_t cpu = first; is_good && cpu <= last; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  BEV_CHECK(is_good, Data, "\"{}\" is no list of CPUs; legal is 0-3,8 with numbers below {}",
            text.substr(0, 80), kMostCpus);
  return cpus;
}

std::string cpu_list_text(std::span<const int> cpus) { return ranges_text(cpus, ",", 2); }

std::vector<Cpu> read_topology(const std::filesystem::path& root) {
  std::map<int, int> node_of;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root / "node", error)) {
    const std::string name = entry.path().filename().string();
    const auto node = name.starts_with("node") ? parse_number<int>(name.substr(4)) : std::nullopt;
    if (!node) continue;
    // A node that has memory only has none.
    const std::string list = system_line(entry.path() / "cpulist");
    if (list.empty()) continue;
    for (const int cpu : parse_cpu_list(list)) node_of[cpu] = *node;
  }
  const std::string online = system_line(root / "cpu" / "online");
  if (!online.empty())
    for (const int cpu : parse_cpu_list(online)) node_of.try_emplace(cpu, 0);
  std::vector<Cpu> topology;
  for (const auto& [cpu, node] : node_of) {
    const std::string siblings =
        system_line(root / "cpu" / format("cpu{}", cpu) / "topology" / "thread_siblings_list");
    topology.push_back({.number = cpu,
                        .core = siblings.empty() ? cpu : parse_cpu_list(siblings).front(),
                        .node = node});
  }
  return topology;
}

std::vector<Cpu> cpus_in(std::span<const Cpu> topology, std::span<const int> cpus) {
  std::vector<Cpu> found;
  for (const int number : cpus) {
    const auto same = std::find_if(topology.begin(), topology.end(),
                                   [&](const Cpu& cpu) { return cpu.number == number; });
    found.push_back(same == topology.end() ? Cpu{.number = number, .core = number, .node = 0}
                                           : *same);
  }
  return found;
}

std::vector<int> numa_nodes_in_use(std::span<const Cpu> topology, std::span<const int> cpus) {
  std::set<int> nodes;
  for (const Cpu& cpu : cpus_in(topology, cpus)) nodes.insert(cpu.node);
  return {nodes.begin(), nodes.end()};
}

std::vector<int> allowed_cpus() {
  // The kernel may know more CPUs than fit the set, and then asks for a larger one.
  for (int count = 1024; count <= kMostCpus; count *= 2) {
    const CpuSet set(count);
    if (::sched_getaffinity(0, set.bytes, set.set) != 0) {
      BEV_CHECK(errno == EINVAL, Device, "the system does not say which CPUs may be used: {}",
                std::strerror(errno));
      continue;
    }
    std::vector<int> cpus;
    for (int cpu = 0; cpu < count; ++cpu)
      if (CPU_ISSET_S(cpu, set.bytes, set.set)) cpus.push_back(cpu);
    return cpus;
  }
  throw Error(ErrorKind::Device, format("this machine has more than {} CPUs", kMostCpus));
}

bool bind_thread(std::span<const int> cpus) {
  const CpuSet set(*std::max_element(cpus.begin(), cpus.end()) + 1);
  for (const int cpu : cpus) CPU_SET_S(cpu, set.bytes, set.set);
  return ::sched_setaffinity(0, set.bytes, set.set) == 0;
}

}  // namespace bev
