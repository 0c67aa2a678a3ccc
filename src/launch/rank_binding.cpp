#include "launch/rank_binding.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <tuple>

#include "base/check.h"
#include "base/format.h"

namespace bev {

namespace {

constexpr int kMostCpus = 65536;
constexpr size_t kMostText = size_t{1} << 20;

// A file of one line of the system, whose size says nothing; empty when it is not there.
std::string line_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The number behind a prefix, "node3" -> 3.
std::optional<int> number_behind(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  int number = 0;
  const auto [stopped, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || stopped != name.data() + name.size() || number < 0)
    return std::nullopt;
  return number;
}

struct Offer {
  std::vector<int> cpus;
  std::optional<int> gpu_node;
};

Offer read_offer(std::string_view text) {
  const size_t at = text.find('@');
  Offer offer{.cpus = parse_cpu_list(text.substr(0, at)), .gpu_node = {}};
  if (at != std::string_view::npos) offer.gpu_node = number_behind(text.substr(at), "@");
  return offer;
}

bool all_the_same(std::span<const Offer> offers) {
  return std::all_of(offers.begin(), offers.end(),
                     [&](const Offer& offer) { return offer.cpus == offers.front().cpus; });
}

bool two_overlap(std::span<const Offer> offers) {
  std::set<int> seen;
  for (const Offer& offer : offers)
    for (const int cpu : offer.cpus)
      if (!seen.insert(cpu).second) return true;
  return false;
}

// The `which`-th of `count` equal parts: whole cores where there are as many. `cpus` may be ordered
// anyhow. Empty: there are too few.
std::vector<int> part_of(std::vector<Cpu> cpus, size_t which, size_t count) {
  if (cpus.size() < count) return {};
  std::sort(cpus.begin(), cpus.end(), [](const Cpu& a, const Cpu& b) {
    return std::tie(a.node, a.core, a.number) < std::tie(b.node, b.core, b.number);
  });
  std::vector<std::vector<int>> units;
  for (size_t i = 0; i < cpus.size(); ++i) {
    if (i == 0 || cpus[i].core != cpus[i - 1].core || cpus[i].node != cpus[i - 1].node)
      units.emplace_back();
    units.back().push_back(cpus[i].number);
  }
  if (units.size() < count) {
    units.clear();
    for (const Cpu& cpu : cpus) units.push_back({cpu.number});
  }
  std::vector<int> part;
  for (size_t i = which * units.size() / count; i < (which + 1) * units.size() / count; ++i)
    part.insert(part.end(), units[i].begin(), units[i].end());
  std::sort(part.begin(), part.end());
  return part;
}

std::vector<Cpu> among(std::span<const Cpu> topology, std::span<const int> cpus) {
  std::vector<Cpu> found;
  for (const int number : cpus) {
    const auto same = std::find_if(topology.begin(), topology.end(),
                                   [&](const Cpu& cpu) { return cpu.number == number; });
    found.push_back(same == topology.end() ? Cpu{.number = number, .core = number, .node = 0}
                                           : *same);
  }
  return found;
}

std::string cpus_in_words(std::span<const int> cpus, std::span<const Cpu> topology) {
  std::set<int> nodes;
  for (const Cpu& cpu : among(topology, cpus)) nodes.insert(cpu.node);
  return format("CPU{} {} of NUMA node{} {} ({} thread{})", cpus.size() == 1 ? "" : "s",
                cpu_list_text(cpus), nodes.size() == 1 ? "" : "s", fmt::join(nodes, ", "),
                cpus.size(), cpus.size() == 1 ? "" : "s");
}

// The CPUs of every rank by the nodes of the GPUs; empty when a rank would get none.
std::vector<std::vector<int>> by_gpu(std::span<const Offer> offers, std::span<const Cpu> cpus) {
  std::map<int, std::vector<Cpu>> of_node;
  for (const Cpu& cpu : cpus) of_node[cpu.node].push_back(cpu);
  std::map<int, size_t> ranks_of_node, taken_of_node;
  for (const Offer& offer : offers) {
    if (!offer.gpu_node || !of_node.contains(*offer.gpu_node)) return {};
    ++ranks_of_node[*offer.gpu_node];
  }
  std::vector<std::vector<int>> parts;
  for (const Offer& offer : offers) {
    const int node = *offer.gpu_node;
    parts.push_back(part_of(of_node[node], taken_of_node[node]++, ranks_of_node[node]));
    if (parts.back().empty()) return {};
  }
  return parts;
}

std::vector<int> divided(std::span<const Offer> offers, std::span<const Cpu> cpus,
                         size_t local_rank) {
  const auto parts = by_gpu(offers, cpus);
  return parts.empty() ? part_of({cpus.begin(), cpus.end()}, local_rank, offers.size())
                       : parts[local_rank];
}

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

}  // namespace

std::vector<int> parse_cpu_list(std::string_view text) {
  const auto refuse = [&] {
    throw Error(ErrorKind::Data,
                format("\"{}\" is no list of CPUs; legal is 0-3,8 with numbers below {}",
                       text.substr(0, 80), kMostCpus));
  };
  if (text.size() > kMostText) refuse();
  std::vector<int> cpus;
  const char* next = text.data();
  const char* const end = text.data() + text.size();
  const auto number = [&] {
    int value = -1;
    const auto [stopped, error] = std::from_chars(next, end, value);
    if (error != std::errc() || value < 0 || value >= kMostCpus) refuse();
    next = stopped;
    return value;
  };
  for (;;) {
    const int first = number();
    int last = first;
    if (next != end && *next == '-') {
      ++next;
      last = number();
    }
    if (last < first || (!cpus.empty() && first <= cpus.back())) refuse();
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (next == end) return cpus;
    if (*next++ != ',') refuse();
  }
}

std::string cpu_list_text(std::span<const int> cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? format("{}", cpus[i]) : format("{}-{}", cpus[i], cpus[last]);
    i = last + 1;
  }
  return text;
}

std::vector<Cpu> read_topology(const std::filesystem::path& root) {
  std::map<int, int> node_of;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root / "node", error)) {
    const auto node = number_behind(entry.path().filename().string(), "node");
    if (!node) continue;
    // A node that has memory only has none.
    const std::string list = line_of(entry.path() / "cpulist");
    if (list.empty()) continue;
    for (const int cpu : parse_cpu_list(list)) node_of[cpu] = *node;
  }
  const std::string online = line_of(root / "cpu" / "online");
  if (!online.empty())
    for (const int cpu : parse_cpu_list(online)) node_of.try_emplace(cpu, 0);
  std::vector<Cpu> topology;
  for (const auto& [cpu, node] : node_of) {
    const std::string siblings =
        line_of(root / "cpu" / format("cpu{}", cpu) / "topology" / "thread_siblings_list");
    topology.push_back({.number = cpu,
                        .core = siblings.empty() ? cpu : parse_cpu_list(siblings).front(),
                        .node = node});
  }
  return topology;
}

int numa_nodes_in_use(std::span<const Cpu> topology, std::span<const int> cpus) {
  std::set<int> nodes;
  for (const Cpu& cpu : among(topology, cpus)) nodes.insert(cpu.node);
  return std::max(1, static_cast<int>(nodes.size()));
}

std::vector<int> allowed_cpus() {
  // The kernel may know more CPUs than fit the set, and then asks for a larger one.
  for (int count = 1024; count <= kMostCpus; count *= 2) {
    const std::unique_ptr<cpu_set_t, FreeCpuSet> set(CPU_ALLOC(count));
    const size_t bytes = CPU_ALLOC_SIZE(count);
    if (::sched_getaffinity(0, bytes, set.get()) != 0) {
      BEV_CHECK(errno == EINVAL, Device, "the system does not say which CPUs may be used: {}",
                std::strerror(errno));
      continue;
    }
    std::vector<int> cpus;
    for (int cpu = 0; cpu < count; ++cpu)
      if (CPU_ISSET_S(cpu, bytes, set.get())) cpus.push_back(cpu);
    return cpus;
  }
  throw Error(ErrorKind::Device, format("this machine has more than {} CPUs", kMostCpus));
}

std::string binding_offer(std::span<const int> cpus, std::optional<int> gpu_node) {
  return cpu_list_text(cpus) + (gpu_node && *gpu_node >= 0 ? format("@{}", *gpu_node) : "");
}

Binding binding_of(int rank, int local_rank, std::span<const std::string> texts,
                   std::span<const Cpu> topology) {
  BEV_CHECK(local_rank >= 0 && static_cast<size_t>(local_rank) < texts.size(), Internal,
            "local rank {} of {}", local_rank, texts.size());
  std::vector<Offer> offers;
  for (const std::string& text : texts) offers.push_back(read_offer(text));
  const Offer& own = offers[static_cast<size_t>(local_rank)];
  const auto as_it_is = [&](std::string_view why) {
    return Binding{
        .cpus = {},
        .words = format("rank {}: {}, {}", rank, cpus_in_words(own.cpus, topology), why)};
  };
  if (offers.size() == 1) return as_it_is("the only rank of its machine");
  if (!all_the_same(offers))
    return as_it_is(two_overlap(offers) ? "not bound: the CPUs given to ranks overlap in part"
                                        : "as the launcher has bound it");
  std::vector<int> cpus =
      divided(offers, among(topology, own.cpus), static_cast<size_t>(local_rank));
  if (cpus.empty()) return as_it_is(format("not bound: {} ranks share them", offers.size()));
  std::string words = format("rank {}: {}", rank, cpus_in_words(cpus, topology));
  return {.cpus = std::move(cpus), .words = std::move(words)};
}

Binding bind_rank(int rank, int local_rank, std::span<const std::string> offers,
                  const Getenv& getenv) {
  const char* value = getenv("BEVATRON_BIND");
  const std::string wanted = value == nullptr || *value == '\0' ? "auto" : value;
  BEV_CHECK(wanted == "auto" || wanted == "none", Usage,
            "the environment variable BEVATRON_BIND is \"{}\"; legal is auto or none",
            wanted.substr(0, 80));
  if (wanted == "none")
    return {.cpus = {}, .words = format("rank {}: not bound, as BEVATRON_BIND says", rank)};
  Binding binding = binding_of(rank, local_rank, offers, read_topology());
  if (binding.cpus.empty()) return binding;
  const int count = binding.cpus.back() + 1;
  const std::unique_ptr<cpu_set_t, FreeCpuSet> set(CPU_ALLOC(count));
  const size_t bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(bytes, set.get());
  for (const int cpu : binding.cpus) CPU_SET_S(cpu, bytes, set.get());
  if (::sched_setaffinity(0, bytes, set.get()) != 0) {
    binding.words += format(", which the system refuses: {}", std::strerror(errno));
    binding.cpus.clear();
  }
  return binding;
}

namespace {

std::optional<int> number(const std::string& text) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// "GPU UUID:        GPU-1a2b..." in what the driver says about a GPU.
std::string uuid_in(const std::filesystem::path& information) {
  std::ifstream file(information);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.substr(0, colon).find("UUID") == std::string::npos)
      continue;
    std::string uuid;
    std::istringstream(line.substr(colon + 1)) >> uuid;
    return uuid;
  }
  return {};
}

std::optional<int> node_in(const std::filesystem::path& path) {
  std::string text;
  std::ifstream(path) >> text;
  return number(text);
}

}  // namespace

std::vector<MachineGpu> machine_gpus(const std::filesystem::path& driver,
                                     const std::filesystem::path& pci) {
  std::vector<MachineGpu> gpus;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(driver, none)) {
    const std::string bus = entry.path().filename().string();
    gpus.push_back({.bus = bus,
                    .uuid = uuid_in(entry.path() / "information"),
                    .node = node_in(pci / bus / "numa_node")});
  }
  std::sort(gpus.begin(), gpus.end(),
            [](const MachineGpu& a, const MachineGpu& b) { return a.bus < b.bus; });
  return gpus;
}

std::vector<std::string> visible_gpus(const char* visible, size_t count) {
  std::vector<std::string> gpus;
  if (visible == nullptr) {
    for (size_t i = 0; i < count; ++i) gpus.push_back(format("{}", i));
  } else {
    std::istringstream rest(visible);
    for (std::string gpu; std::getline(rest, gpu, ',');) gpus.push_back(gpu);
  }
  return gpus;
}

const MachineGpu* find_gpu(const std::vector<MachineGpu>& gpus, const std::string& name) {
  if (const auto index = number(name)) {
    return static_cast<size_t>(*index) < gpus.size() ? &gpus[static_cast<size_t>(*index)] : nullptr;
  }
  const auto found = std::find_if(gpus.begin(), gpus.end(), [&](const MachineGpu& gpu) {
    return !name.empty() && gpu.uuid.starts_with(name);
  });
  return found == gpus.end() ? nullptr : &*found;
}

void assign_gpu(RankEnvironment& environment) {
  const std::vector<MachineGpu> gpus =
      machine_gpus("/proc/driver/nvidia/gpus", "/sys/bus/pci/devices");
  const std::vector<std::string> visible =
      visible_gpus(std::getenv("CUDA_VISIBLE_DEVICES"), gpus.size());
  environment.local_gpus = static_cast<int>(visible.size());
  if (visible.empty()) return;
  const std::string& own = visible[static_cast<size_t>(environment.local_rank) % visible.size()];
  if (const MachineGpu* gpu = find_gpu(gpus, own)) environment.gpu_node = gpu->node;
  if (environment.local_size > 1 && visible.size() > 1)
    ::setenv("CUDA_VISIBLE_DEVICES", own.c_str(), 1);
}

}  // namespace bev
