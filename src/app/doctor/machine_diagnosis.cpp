#include <algorithm>
#include <cstdlib>
#include <optional>

#include "app/doctor/doctor.h"
#include "base/format.h"

namespace bev::app {

namespace {

constexpr int kOldestCapability = 80;
constexpr int64_t kGiB = int64_t{1} << 30;

struct Machine {
  const HostInfo& host;
  const CudaInfo& cuda;
};

// Whether anything says that there is an NVIDIA GPU, usable or not.
bool is_gpu_present(const Machine& m) {
  return m.host.nvidia_cards > 0 || m.host.has_kernel_module || !m.host.device_files.empty() ||
         m.cuda.installed_gpus > 0 || !m.cuda.gpus.empty();
}

std::string driver_to_install(int cuda_version) {
  const std::string_view oldest = oldest_driver(cuda_version);
  if (oldest.empty()) return format("a driver for CUDA {}", cuda_version_text(cuda_version));
  return format("NVIDIA's driver {} or newer", oldest);
}

// Why CUDA sees no GPU. Each rule answers or leaves it to the next one.
using Rule = std::optional<MachineIssue> (*)(const Machine& m);

std::optional<MachineIssue> build_without_cuda(const Machine& m) {
  if (m.cuda.is_built) return {};
  return MachineIssue{
      Severity::Fault, "no-cuda-in-build",
      "there is an NVIDIA GPU, but this program was built without CUDA",
      "install a CUDA toolkit (nvcc) and build again, or use a bundle that was built "
      "with one"};
}

std::optional<MachineIssue> no_permission(const Machine& m) {
  for (const DeviceFile& file : m.host.device_files) {
    if (file.is_usable) continue;
    const bool by_group = (file.mode & 0060) == 0060;
    return MachineIssue{
        Severity::Fault, "no-permission",
        format("{} may not be used by {}: it belongs to {}:{}, mode {:04o}", file.path, m.host.user,
               file.owner, file.group, file.mode),
        by_group ? format("sudo usermod -aG {} {}, then log in again", file.group, m.host.user)
                 : format("sudo chmod 666 {}, and NVreg_DeviceFileMode=0666 among the "
                          "options of the nvidia module",
                          file.path)};
  }
  return {};
}

std::optional<MachineIssue> container_without_gpu(const Machine& m) {
  if (!m.host.is_container || !m.host.device_files.empty() || !m.host.has_kernel_module) return {};
  return MachineIssue{
      Severity::Fault, "container-without-gpu",
      "this container was started without its GPUs: there is no /dev/nvidia0",
      "docker run --gpus all (with the NVIDIA container toolkit on the host), or podman "
      "run --device nvidia.com/gpu=all"};
}

std::optional<MachineIssue> no_driver(const Machine& m) {
  if (m.host.has_kernel_module || !m.host.device_files.empty()) return {};
  return MachineIssue{Severity::Fault, "no-driver",
                      "there is an NVIDIA GPU, but its driver is not loaded",
                      format("install {}{} and restart", driver_to_install(m.cuda.built_with),
                             m.host.is_container ? " on the host" : "")};
}

std::optional<MachineIssue> no_driver_library(const Machine& m) {
  if (m.cuda.driver_cuda > 0) return {};
  return MachineIssue{Severity::Fault, "no-driver-library",
                      "the driver is loaded, but its library libcuda.so.1 is not found",
                      m.host.is_container
                          ? "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
                          : "install the driver's library (Ubuntu: libnvidia-compute-NNN, Debian: "
                            "libcuda1), or put its folder on LD_LIBRARY_PATH"};
}

std::optional<MachineIssue> driver_too_old(const Machine& m) {
  if (m.cuda.error != "cudaErrorInsufficientDriver") return {};
  return MachineIssue{
      Severity::Fault, "driver-too-old",
      format("the driver{} is for CUDA {}, this program for {}",
             m.cuda.driver.empty() ? "" : " " + m.cuda.driver,
             cuda_version_text(m.cuda.driver_cuda), cuda_version_text(m.cuda.built_with)),
      format("install {}, or build with a toolkit of CUDA {}", driver_to_install(m.cuda.built_with),
             cuda_version_text(m.cuda.driver_cuda))};
}

std::optional<MachineIssue> driver_mismatch(const Machine& m) {
  if (m.cuda.error != "cudaErrorSystemDriverMismatch" &&
      m.cuda.nvml.why.find("version mismatch") == std::string::npos)
    return {};
  return MachineIssue{Severity::Fault, "driver-mismatch",
                      "the driver's library and its kernel module are of different versions",
                      "restart the machine: the driver was updated while it was loaded"};
}

std::optional<MachineIssue> fabric_not_ready(const Machine& m) {
  if (m.cuda.error != "cudaErrorSystemNotReady") return {};
  return MachineIssue{
      Severity::Fault, "fabric-not-ready",
      "the GPUs are joined by NVSwitch, and the service that sets it up is not running",
      "sudo systemctl start nvidia-fabricmanager (of the driver's version)"};
}

std::optional<MachineIssue> gpus_hidden(const Machine& m) {
  if (!m.host.visible_devices || m.cuda.error != "cudaErrorNoDevice") return {};
  const std::string& value = *m.host.visible_devices;
  const int count = std::max(m.cuda.installed_gpus, m.host.nvidia_cards);
  return MachineIssue{
      Severity::Fault, "gpus-hidden",
      value.empty()
          ? "CUDA_VISIBLE_DEVICES is set and empty, which hides every GPU"
          : format("CUDA_VISIBLE_DEVICES={} names no GPU of this machine", value.substr(0, 80)),
      count > 1 ? format("unset CUDA_VISIBLE_DEVICES, or set it to numbers of 0 to {}", count - 1)
                : "unset CUDA_VISIBLE_DEVICES, or set it to 0"};
}

std::optional<MachineIssue> address_space_limited(const Machine& m) {
  if (m.host.address_space_limit == 0) return {};
  return MachineIssue{
      Severity::Fault, "address-space-limited",
      format("this process may use {} of addresses (ulimit -v); CUDA reserves more than "
             "the memory of all GPUs and the machine together",
             as_bytes(static_cast<double>(m.host.address_space_limit))),
      "ulimit -v unlimited, or ask for it where jobs are started"};
}

std::optional<MachineIssue> no_device_files(const Machine& m) {
  if (!m.host.device_files.empty() || !m.host.has_kernel_module) return {};
  return MachineIssue{Severity::Fault, "no-device-files",
                      "the driver is loaded, but there is no /dev/nvidia0",
                      "sudo nvidia-modprobe -c 0 -u makes the files; dmesg says whether the driver "
                      "refused the GPU"};
}

std::optional<MachineIssue> cuda_error(const Machine& m) {
  return MachineIssue{Severity::Fault, "cuda-error",
                      m.cuda.error.empty()
                          ? "CUDA reports no GPU, and no error"
                          : format("CUDA says: {} ({})", m.cuda.error_text, m.cuda.error),
                      "nvidia-smi and dmesg say more; a restart of the machine resets the GPU"};
}

constexpr Rule kWhyNoGpu[] = {build_without_cuda,    container_without_gpu, no_driver,
                              no_driver_library,     driver_too_old,        driver_mismatch,
                              fabric_not_ready,      no_permission,         gpus_hidden,
                              address_space_limited, no_device_files,       cuda_error};

MachineIssue why_no_gpu(const Machine& m) {
  if (!is_gpu_present(m)) return {Severity::Note, "no-gpu", "no NVIDIA GPU was found"};
  for (const Rule rule : kWhyNoGpu) {
    if (auto finding = rule(m)) return *finding;
  }
  return {};
}

// Another GPU that could serve instead of the first: its number, or -1.
int other_gpu(const CudaInfo& cuda, int64_t wanted_free) {
  for (const GpuInfo& gpu : cuda.gpus) {
    if (gpu.index > 0 && gpu.compute_capability >= kOldestCapability &&
        gpu.memory_free >= wanted_free)
      return gpu.index;
  }
  return -1;
}

void look_at_capability(const CudaInfo& cuda, std::vector<MachineIssue>& findings) {
  const GpuInfo& gpu = cuda.gpus.front();
  const int capability = gpu.compute_capability;
  const bool ptx_works = cuda.driver_cuda >= cuda.built_with;
  if (capability < kOldestCapability) {
    const int other = other_gpu(cuda, 0);
    findings.push_back({Severity::Fault, "gpu-too-old",
                        format("{} has compute capability {}.{}; 8.0 (Ampere) or newer is needed",
                               gpu.name, capability / 10, capability % 10),
                        other < 0 ? "train on the CPU with --device cpu, or on another machine"
                                  : format("CUDA_VISIBLE_DEVICES={}", other)});
  } else if (!has_code_for(cuda.built_for, capability, ptx_works)) {
    const bool only_ptx = has_code_for(cuda.built_for, capability, true);
    findings.push_back(
        {Severity::Fault, "no-code-for-gpu",
         only_ptx ? format("for {} (sm_{}) this build has only PTX, and the driver is too old to "
                           "translate it",
                           gpu.name, capability)
                  : format("this build has no code for {} (sm_{}), only for {}", gpu.name,
                           capability, fmt::join(cuda.built_for, " ")),
         only_ptx
             ? format("install {}, or build with -DCMAKE_CUDA_ARCHITECTURES={}",
                      driver_to_install(cuda.built_with), capability)
             : format("make release, or build with -DCMAKE_CUDA_ARCHITECTURES={}", capability)});
  }
}

std::string process_list(const std::vector<GpuProcess>& processes) {
  std::string list;
  for (const GpuProcess& p : processes) {
    list += format("{}{}{}{}", list.empty() ? "" : ", ", p.id,
                   p.name.empty() ? "" : format(" ({})", p.name),
                   p.bytes > 0 ? " " + as_bytes(static_cast<double>(p.bytes)) : "");
  }
  return list;
}

void look_at_memory(const CudaInfo& cuda, std::vector<MachineIssue>& findings) {
  const GpuInfo& gpu = cuda.gpus.front();
  const bool is_known = gpu.memory_free > 0 && gpu.memory_total > 0;
  const bool nearly_full = is_known && gpu.memory_free < gpu.memory_total / 10;
  if (nearly_full) {
    const int other = other_gpu(cuda, gpu.memory_total / 2);
    const std::string instead =
        other < 0 ? "" : format(", or use another GPU: CUDA_VISIBLE_DEVICES={}", other);
    findings.push_back(
        {gpu.memory_free < kGiB ? Severity::Fault : Severity::Warning, "gpu-full",
         format("only {} of the {} of {} are free", as_bytes(static_cast<double>(gpu.memory_free)),
                as_bytes(static_cast<double>(gpu.memory_total)), gpu.name),
         gpu.processes.empty() ? "end what else uses it (nvidia-smi lists processes)" + instead
                               : format("end process {}{}", process_list(gpu.processes), instead)});
  } else if (!gpu.processes.empty()) {
    findings.push_back(
        {Severity::Note, "gpu-shared",
         format("{} is also used by process {}", gpu.name, process_list(gpu.processes)),
         "measurements are of what they leave"});
  }
}

std::string library_fix(std::string_view packages, const HostInfo& host) {
  return format("install {}, or put the folder that holds it on LD_LIBRARY_PATH ({})", packages,
                host.library_path.empty() ? "not set now" : "now " + host.library_path);
}

// Without cuDNN attention runs in our own kernels, slower.
void look_at_cudnn(const Machine& m, std::vector<MachineIssue>& findings) {
  const LibraryInfo& cudnn = m.cuda.cudnn;
  const int major = m.cuda.built_with / 1000;
  const auto warn = [&](std::string_view code, std::string what, std::string fix) {
    findings.push_back({Severity::Warning, code,
                        "attention runs slower than it could: " + std::move(what), std::move(fix)});
  };
  if (!m.cuda.has_cudnn) {
    warn("no-cudnn-in-build", "this program was built without the headers of cuDNN's frontend",
         "scripts/install-deps.sh fetches them; then build again");
  } else if (!cudnn.is_loaded()) {
    warn("no-cudnn", "cuDNN: " + cudnn.why,
         library_fix(format("cudnn9-cuda-{} (NVIDIA's repository)", major), m.host));
  } else if (!m.cuda.runtime.is_loaded()) {
    warn("no-runtime", "cuDNN is used through CUDA's runtime: " + m.cuda.runtime.why,
         library_fix(
             format("cuda-cudart-{}-{} (NVIDIA's repository)", major, m.cuda.built_with / 10 % 100),
             m.host));
  } else if (cudnn.number < cuda::kOldestCudnn) {
    warn("cudnn-too-old", format("cuDNN {} is not used", cudnn.version),
         format("install cuDNN {}.{} or newer", cuda::kOldestCudnn / 10000,
                cuda::kOldestCudnn / 100 % 100));
  } else if (cuda::is_broken_cudnn(cudnn.number)) {
    warn("cudnn-broken", format("that of cuDNN {} is broken and not used", cudnn.version),
         "install cuDNN 9.10.2 or newer");
  }
}

void look_at_libraries(const Machine& m, std::vector<MachineIssue>& findings) {
  const int major = m.cuda.built_with / 1000, minor = m.cuda.built_with / 10 % 100;
  if (!m.cuda.cublaslt.is_loaded())
    findings.push_back(
        {Severity::Fault, "no-cublaslt",
         format("cuBLASLt, which computes matrix products: {}", m.cuda.cublaslt.why),
         library_fix(format("libcublas-{}-{} (NVIDIA's repository)", major, minor), m.host)});
  look_at_cudnn(m, findings);
  if (!m.cuda.nvml.is_loaded())
    findings.push_back(
        {Severity::Note, "no-nvml",
         format("clocks and other processes are not known, since NVML: {}", m.cuda.nvml.why),
         "install the driver's nvidia-utils"});
}

void look_at_gpus(const Machine& m, std::vector<MachineIssue>& findings) {
  look_at_capability(m.cuda, findings);
  look_at_memory(m.cuda, findings);
  look_at_libraries(m, findings);
  if (m.cuda.gpus.front().persistence == false)
    findings.push_back({Severity::Note, "no-persistence",
                        "the driver lets the GPU go when nobody uses it, and every start waits for "
                        "it (persistence mode is off)",
                        "sudo nvidia-smi -pm 1"});
}

}  // namespace

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::Note: return "note";
    case Severity::Warning: return "warning";
    case Severity::Fault: return "fault";
  }
  return "";
}

std::vector<MachineIssue> diagnose(const HostInfo& host, const CudaInfo& cuda) {
  const Machine machine{host, cuda};
  std::vector<MachineIssue> findings;
  if (cuda.gpus.empty()) {
    findings.push_back(why_no_gpu(machine));
  } else {
    look_at_gpus(machine, findings);
  }
  if (host.memory_free > 0 && host.memory_free < kGiB)
    findings.push_back({Severity::Warning, "memory-low",
                        format("only {} of the machine's {} are free",
                               as_bytes(static_cast<double>(host.memory_free)),
                               as_bytes(static_cast<double>(host.memory_total))),
                        "end what else uses it; `bevatron plan` says what a run takes"});
  std::stable_sort(
      findings.begin(), findings.end(),
      [](const MachineIssue& a, const MachineIssue& b) { return a.severity > b.severity; });
  return findings;
}

bool has_fault(const std::vector<MachineIssue>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const MachineIssue& f) { return f.severity == Severity::Fault; });
}

bool has_code_for(const std::vector<std::string>& built_for, int compute_capability,
                  bool ptx_works) {
  return std::any_of(built_for.begin(), built_for.end(), [&](const std::string& code) {
    char* end = nullptr;
    const int number = static_cast<int>(std::strtol(code.c_str(), &end, 10));
    const std::string_view rest = end;
    const bool is_specific = !rest.starts_with('-') && !rest.empty();  // 90a: of that GPU only
    if (is_specific) return number == compute_capability;
    const bool is_real = rest != "-virtual", is_ptx = rest != "-real";
    return (is_real && number / 10 == compute_capability / 10 && number <= compute_capability) ||
           (is_ptx && ptx_works && number <= compute_capability);
  });
}

std::string_view oldest_driver(int cuda_version) {
  switch (cuda_version / 1000) {
    case 12: return "525.60.13";
    case 13: return "580.65.06";
    default: return "";
  }
}

std::string cuda_version_text(int version) {
  return format("{}.{}", version / 1000, version / 10 % 100);
}

}  // namespace bev::app
