#include "launch/rank_binding.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <tuple>

#include "base/check.h"
#include "base/format.h"
#include "base/number_list.h"
#include "base/system_file.h"

namespace bev {

namespace {

struct Offer {
  std::vector<int> cpus;
  std::optional<int> gpu_node;
};

Offer read_offer(std::string_view text) {
  const size_t at = text.find('@');
  Offer offer{.cpus = parse_cpu_list(text.substr(0, at)), .gpu_node = {}};
  if (at != std::string_view::npos) offer.gpu_node = parse_number<int>(text.substr(at + 1));
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

std::string cpus_in_words(std::span<const int> cpus, std::span<const Cpu> topology) {
  const std::vector<int> nodes = numa_nodes_in_use(topology, cpus);
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

}  // namespace

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
      divided(offers, cpus_in(topology, own.cpus), static_cast<size_t>(local_rank));
  if (cpus.empty()) return as_it_is(format("not bound: {} ranks share them", offers.size()));
  std::string words = format("rank {}: {}", rank, cpus_in_words(cpus, topology));
  return {.cpus = std::move(cpus), .words = std::move(words)};
}

Binding bind_rank(int rank, int local_rank, std::span<const std::string> offers,
                  const Getenv& getenv) {
  const std::string wanted = variable_text(getenv, "BEVATRON_BIND");
  BEV_CHECK(wanted.empty() || wanted == "auto" || wanted == "none", Usage,
            "the environment variable BEVATRON_BIND is \"{}\"; legal is auto or none",
            wanted.substr(0, 80));
  if (wanted == "none")
    return {.cpus = {}, .words = format("rank {}: not bound, as BEVATRON_BIND says", rank)};
  Binding binding = binding_of(rank, local_rank, offers, read_topology());
  if (!binding.cpus.empty() && !bind_thread(binding.cpus)) {
    binding.words += format(", which the system refuses: {}", std::strerror(errno));
    binding.cpus.clear();
  }
  return binding;
}

std::vector<MachineGpu> machine_gpus(const std::filesystem::path& driver,
                                     const std::filesystem::path& pci) {
  std::vector<MachineGpu> gpus;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(driver, none)) {
    const std::string bus = entry.path().filename().string();
    gpus.push_back({.bus = bus,
                    .uuid = system_value(entry.path() / "information", "GPU UUID"),
                    .node = parse_number<int>(system_line(pci / bus / "numa_node"))});
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
  if (const auto index = parse_number<size_t>(name)) {
    return *index < gpus.size() ? &gpus[*index] : nullptr;
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
