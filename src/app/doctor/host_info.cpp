#include <grp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "app/doctor/doctor.h"
#include "base/format.h"
#include "base/system_file.h"
#include "ops/cpu/simd/isa.h"
#include "ops/make_device.h"

namespace bev::app {

namespace {

namespace fs = std::filesystem;

int64_t memory_total() {
  return std::strtoll(system_value("/proc/meminfo", "MemTotal").c_str(), nullptr, 10) * 1024;
}

std::vector<std::string> vector_extensions() {
  std::vector<std::string> list;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const auto note = [&](bool has, const char* name) {
    if (has) list.emplace_back(name);
  };
  note(__builtin_cpu_supports("avx2"), "avx2");
  note(__builtin_cpu_supports("fma"), "fma");
  note(__builtin_cpu_supports("avx512f"), "avx512f");
  note(__builtin_cpu_supports("avx512bw"), "avx512bw");
  note(__builtin_cpu_supports("avx512dq"), "avx512dq");
  note(__builtin_cpu_supports("avx512vl"), "avx512vl");
  note(__builtin_cpu_supports("avx512bf16"), "avx512bf16");
#endif
  return list;
}

std::string user_name(uid_t id) {
  const passwd* entry = ::getpwuid(id);
  return entry != nullptr ? entry->pw_name : format("{}", id);
}

std::string group_name(gid_t id) {
  const group* entry = ::getgrgid(id);
  return entry != nullptr ? entry->gr_name : format("{}", id);
}

// Entries of a folder that can be read, sorted; none of one that cannot.
std::vector<fs::path> entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> list;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    list.push_back(it->path());
  }
  std::sort(list.begin(), list.end());
  return list;
}

int nvidia_cards() {
  int cards = 0;
  for (const fs::path& device : entries("/sys/bus/pci/devices")) {
    // Class 03: display controllers, to which compute cards without a display belong too.
    cards += system_line(device / "vendor") == "0x10de" &&
             system_line(device / "class").starts_with("0x03");
  }
  return cards;
}

bool is_device_of_driver(const std::string& name) {
  if (name == "nvidiactl" || name == "nvidia-uvm") return true;
  return name.starts_with("nvidia") && name.size() > 6 &&
         name.find_first_not_of("0123456789", 6) == std::string::npos;
}

std::vector<DeviceFile> device_files() {
  std::vector<DeviceFile> files;
  for (const fs::path& path : entries("/dev")) {
    struct stat status{};
    if (!is_device_of_driver(path.filename()) || ::stat(path.c_str(), &status) != 0) continue;
    files.push_back({.path = path.string(),
                     .owner = user_name(status.st_uid),
                     .group = group_name(status.st_gid),
                     .mode = static_cast<int>(status.st_mode & 07777),
                     .is_usable = ::access(path.c_str(), R_OK | W_OK) == 0});
  }
  return files;
}

// Files that docker and podman leave, and what the latter and systemd say.
bool is_container() {
  std::error_code error;
  return fs::exists("/.dockerenv", error) || fs::exists("/run/.containerenv", error) ||
         std::getenv("container") != nullptr || std::getenv("KUBERNETES_SERVICE_HOST") != nullptr;
}

int64_t limit_of(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
  return static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace

HostInfo host_info() {
  HostInfo facts{.processor = system_value("/proc/cpuinfo", "model name"),
                 .extensions = vector_extensions(),
                 .kernels = std::string(name_of_choice(cpu::best_isa())),
                 .threads = usable_threads(),
                 .memory_total = memory_total(),
                 .memory_free = static_cast<int64_t>(free_memory(DeviceKind::Cpu)),
                 .user = user_name(::geteuid()),
                 .nvidia_cards = nvidia_cards(),
                 .device_files = device_files(),
                 .is_container = is_container(),
                 .address_space_limit = limit_of(RLIMIT_AS),
                 .locked_memory_limit = limit_of(RLIMIT_MEMLOCK)};
  std::error_code error;
  facts.has_kernel_module = fs::exists("/proc/driver/nvidia/version", error) ||
                            fs::exists("/sys/module/nvidia/version", error);
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) facts.visible_devices = visible;
  if (const char* path = std::getenv("LD_LIBRARY_PATH")) facts.library_path = path;
  return facts;
}

}  // namespace bev::app
