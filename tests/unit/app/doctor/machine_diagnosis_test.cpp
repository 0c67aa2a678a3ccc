#include <gtest/gtest.h>

#include "app/doctor/doctor.h"
#include "base/format.h"

namespace bev::app {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// A machine on which nothing is wrong; each test breaks one thing.
struct Healthy {
  HostInfo host{.processor = "some processor",
                .memory_total = 64 * kGiB,
                .memory_free = 32 * kGiB,
                .user = "ada",
                .nvidia_cards = 1,
                .has_kernel_module = true,
                .device_files = {{.path = "/dev/nvidia0",
                                  .owner = "root",
                                  .group = "root",
                                  .mode = 0666,
                                  .is_usable = true}}};
  CudaInfo cuda{.is_built = true,
                .built_with = 13000,
                .built_for = {"90-real", "80-virtual"},
                .driver = "580.65.06",
                .driver_cuda = 13000,
                .installed_gpus = 1,
                .gpus = {gpu(0)},
                .has_cudnn = true,
                .nvml = found("NVML", "13.580"),
                .cublaslt = found("cuBLASLt", "13.1.0"),
                .cudnn = found("cuDNN", "9.19.0", 91900),
                .nccl = found("NCCL", "2.28.9"),
                .runtime = found("runtime", "")};

  static GpuInfo gpu(int index) {
    return {.index = index,
            .name = "NVIDIA H200",
            .compute_capability = 90,
            .multiprocessors = 132,
            .memory_total = 140 * kGiB,
            .memory_free = 139 * kGiB,
            .persistence = true};
  }
  static LibraryInfo found(const char* name, const char* version, int number = 0) {
    return {.name = name, .path = "lib.so", .version = version, .number = number};
  }

  // The GPU cannot be used, and CUDA gives this reason.
  void lose_gpus(const char* error) {
    cuda.gpus.clear();
    cuda.error = error;
    cuda.error_text = "the text of the error";
  }
  std::vector<MachineIssue> findings() const { return diagnose(host, cuda); }
};

struct Expected {
  Severity severity;
  std::string_view code;
  std::vector<std::string_view> says;  // in what is so and how to fix it
};

// Exactly this one is found.
void expect_only(const Healthy& machine, const Expected& expected) {
  const std::vector<MachineIssue> findings = machine.findings();
  ASSERT_EQ(findings.size(), 1u) << (findings.empty() ? "none" : findings[0].what);
  const MachineIssue& f = findings.front();
  EXPECT_EQ(f.severity, expected.severity) << f.what;
  EXPECT_EQ(f.code, expected.code);
  const std::string text = f.what + "; " + f.fix;
  for (const std::string_view part : expected.says) {
    EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
  }
  EXPECT_EQ(has_fault(findings), expected.severity == Severity::Fault);
}

TEST(Diagnosis, AHealthyMachineHasNoFindings) { EXPECT_TRUE(Healthy().findings().empty()); }

TEST(Diagnosis, NoGpuIsNoFault) {
  Healthy m;
  m.lose_gpus("cudaErrorInsufficientDriver");
  m.host.nvidia_cards = 0;
  m.host.has_kernel_module = false;
  m.host.device_files.clear();
  m.cuda.installed_gpus = 0;
  m.cuda.driver_cuda = 0;
  expect_only(m, {Severity::Note, "no-gpu", {"no NVIDIA GPU"}});
  m.cuda = {};  // the same of a build without CUDA
  expect_only(m, {Severity::Note, "no-gpu", {}});
}

TEST(Diagnosis, BuildWithoutTheGpuBackend) {
  Healthy m;
  m.cuda = {};
  expect_only(m, {Severity::Fault, "no-cuda-in-build", {"nvcc"}});
}

TEST(Diagnosis, NoDriver) {
  Healthy m;
  m.lose_gpus("cudaErrorInsufficientDriver");
  m.host.has_kernel_module = false;
  m.host.device_files.clear();
  m.cuda.driver_cuda = 0;
  expect_only(m, {Severity::Fault, "no-driver", {"580.65.06 or newer"}});
  m.host.is_container = true;
  expect_only(m, {Severity::Fault, "no-driver", {"on the host"}});
}

TEST(Diagnosis, NoDriverLibrary) {
  Healthy m;
  m.lose_gpus("cudaErrorInsufficientDriver");
  m.cuda.driver_cuda = 0;
  expect_only(m, {Severity::Fault, "no-driver-library", {"libcuda.so.1", "LD_LIBRARY_PATH"}});
  m.host.is_container = true;
  expect_only(m, {Severity::Fault, "no-driver-library", {"NVIDIA_DRIVER_CAPABILITIES"}});
}

TEST(Diagnosis, ContainerWithoutGpu) {
  Healthy m;
  m.lose_gpus("cudaErrorInsufficientDriver");
  m.cuda.driver_cuda = 0;
  m.host.device_files.clear();
  m.host.is_container = true;
  expect_only(m, {Severity::Fault, "container-without-gpu", {"--gpus all"}});
}

TEST(Diagnosis, DriverTooOld) {
  Healthy m;
  m.lose_gpus("cudaErrorInsufficientDriver");
  m.cuda.driver = "535.104.05";
  m.cuda.driver_cuda = 12020;
  expect_only(m, {Severity::Fault,
                  "driver-too-old",
                  {"535.104.05", "CUDA 12.2", "13.0", "580.65.06 or newer"}});
}

TEST(Diagnosis, DriverMismatch) {
  Healthy m;
  m.lose_gpus("cudaErrorSystemDriverMismatch");
  expect_only(m, {Severity::Fault, "driver-mismatch", {"restart"}});
  m.lose_gpus("cudaErrorUnknown");
  m.cuda.nvml.why = "Driver/library version mismatch";
  expect_only(m, {Severity::Fault, "driver-mismatch", {"restart"}});
}

TEST(Diagnosis, FabricNotReady) {
  Healthy m;
  m.lose_gpus("cudaErrorSystemNotReady");
  expect_only(m, {Severity::Fault, "fabric-not-ready", {"nvidia-fabricmanager"}});
}

TEST(Diagnosis, NoPermission) {
  Healthy m;
  m.lose_gpus("cudaErrorNoDevice");
  m.host.device_files[0] = {
      .path = "/dev/nvidia0", .owner = "root", .group = "video", .mode = 0660, .is_usable = false};
  expect_only(m, {Severity::Fault,
                  "no-permission",
                  {"/dev/nvidia0", "ada", "root:video", "0660", "usermod -aG video ada"}});
  m.host.device_files[0].mode = 0600;
  expect_only(m, {Severity::Fault, "no-permission", {"chmod 666 /dev/nvidia0"}});
}

TEST(Diagnosis, GpusHidden) {
  Healthy m;
  m.lose_gpus("cudaErrorNoDevice");
  m.host.visible_devices = "";
  expect_only(m, {Severity::Fault, "gpus-hidden", {"empty", "set it to 0"}});
  m.host.visible_devices = "9";
  m.cuda.installed_gpus = 8;
  expect_only(m, {Severity::Fault, "gpus-hidden", {"CUDA_VISIBLE_DEVICES=9", "0 to 7"}});
}

TEST(Diagnosis, AddressSpaceLimited) {
  Healthy m;
  m.lose_gpus("cudaErrorMemoryAllocation");
  m.host.address_space_limit = 32 * kGiB;
  expect_only(m, {Severity::Fault, "address-space-limited", {"32.00 GiB", "ulimit -v unlimited"}});
}

TEST(Diagnosis, NoDeviceFiles) {
  Healthy m;
  m.lose_gpus("cudaErrorNoDevice");
  m.host.device_files.clear();
  expect_only(m, {Severity::Fault, "no-device-files", {"nvidia-modprobe"}});
}

TEST(Diagnosis, AnyOtherErrorIsRepeated) {
  Healthy m;
  m.lose_gpus("cudaErrorUnknown");
  expect_only(m, {Severity::Fault, "cuda-error", {"the text of the error", "cudaErrorUnknown"}});
  m.lose_gpus("");
  expect_only(m, {Severity::Fault, "cuda-error", {"no error"}});
}

TEST(Diagnosis, GpuTooOld) {
  Healthy m;
  m.cuda.gpus[0].name = "Tesla V100";
  m.cuda.gpus[0].compute_capability = 70;
  expect_only(m, {Severity::Fault, "gpu-too-old", {"Tesla V100", "7.0", "--device cpu"}});
  m.cuda.gpus.push_back(Healthy::gpu(1));
  expect_only(m, {Severity::Fault, "gpu-too-old", {"CUDA_VISIBLE_DEVICES=1"}});
}

TEST(Diagnosis, NoCodeForTheGpu) {
  Healthy m;
  m.cuda.built_for = {"90-real"};
  m.cuda.gpus[0].compute_capability = 80;
  expect_only(
      m, {Severity::Fault, "no-code-for-gpu", {"sm_80", "90-real", "CMAKE_CUDA_ARCHITECTURES=80"}});
}

TEST(Diagnosis, PtxNeedsADriverOfItsVersion) {
  Healthy m;
  m.cuda.gpus[0].compute_capability = 80;
  EXPECT_TRUE(m.findings().empty());
  m.cuda.built_with = 13010;  // a 13.0 driver runs machine code of CUDA 13.1, but not its PTX
  expect_only(m, {Severity::Fault, "no-code-for-gpu", {"only PTX", "too old"}});
}

TEST(Diagnosis, GpuFull) {
  Healthy m;
  m.cuda.gpus[0].memory_free = 10 * kGiB;
  expect_only(m, {Severity::Warning, "gpu-full", {"10.00 GiB of the 140.00 GiB", "nvidia-smi"}});
  m.cuda.gpus[0].memory_free = kGiB / 2;
  m.cuda.gpus[0].processes = {{.id = 4711, .name = "python", .bytes = 139 * kGiB}};
  m.cuda.gpus.push_back(Healthy::gpu(1));
  expect_only(
      m, {Severity::Fault, "gpu-full", {"4711 (python) 139.00 GiB", "CUDA_VISIBLE_DEVICES=1"}});
}

TEST(Diagnosis, GpuShared) {
  Healthy m;
  m.cuda.gpus[0].processes = {{.id = 4711, .name = {}, .bytes = 0}};
  expect_only(m, {Severity::Note, "gpu-shared", {"process 4711"}});
}

TEST(Diagnosis, NoCublasLt) {
  Healthy m;
  m.cuda.cublaslt = {.name = "cuBLASLt", .why = "libcublasLt.so.13: cannot open"};
  expect_only(m, {Severity::Fault,
                  "no-cublaslt",
                  {"libcublasLt.so.13", "libcublas-13-0", "LD_LIBRARY_PATH (not set now)"}});
  m.host.library_path = "/opt/lib";
  expect_only(m, {Severity::Fault, "no-cublaslt", {"now /opt/lib"}});
}

TEST(Diagnosis, NoCudnn) {
  Healthy m;
  m.cuda.cudnn = {.name = "cuDNN", .why = "libcudnn.so.9: cannot open"};
  expect_only(m, {Severity::Warning, "no-cudnn", {"libcudnn.so.9", "cudnn9-cuda-13"}});
}

TEST(Diagnosis, BuildWithoutCudnn) {
  Healthy m;
  m.cuda.has_cudnn = false;
  m.cuda.cudnn = {.name = "cuDNN", .why = "libcudnn.so.9: cannot open"};
  expect_only(m, {Severity::Warning, "no-cudnn-in-build", {"scripts/install-deps.sh"}});
}

TEST(Diagnosis, NoRuntimeForCudnn) {
  Healthy m;
  m.cuda.runtime = {.name = "runtime", .why = "libcudart.so.13: cannot open"};
  expect_only(m, {Severity::Warning, "no-runtime", {"libcudart.so.13", "cuda-cudart-13-0"}});
}

TEST(Diagnosis, OldCudnn) {
  Healthy m;
  m.cuda.cudnn = Healthy::found("cuDNN", "9.5.1", 90501);
  expect_only(m, {Severity::Warning, "cudnn-too-old", {"9.5.1", "9.6 or newer"}});
}

TEST(Diagnosis, BrokenCudnn) {
  Healthy m;
  for (const int patch : {0, 1}) {
    const std::string version = format("9.10.{}", patch);
    m.cuda.cudnn = Healthy::found("cuDNN", version.c_str(), 91000 + patch);
    expect_only(m, {Severity::Warning, "cudnn-broken", {version, "9.10.2"}});
  }
  m.cuda.cudnn = Healthy::found("cuDNN", "9.10.2", 91002);
  EXPECT_TRUE(m.findings().empty());
}

TEST(Diagnosis, NoNvml) {
  Healthy m;
  m.cuda.nvml = {.name = "NVML", .why = "libnvidia-ml.so.1: cannot open"};
  expect_only(m, {Severity::Note, "no-nvml", {"libnvidia-ml.so.1", "nvidia-utils"}});
}

TEST(Diagnosis, NoPersistence) {
  Healthy m;
  m.cuda.gpus[0].persistence = false;
  expect_only(m, {Severity::Note, "no-persistence", {"nvidia-smi -pm 1"}});
}

TEST(Diagnosis, MemoryLow) {
  Healthy m;
  m.host.memory_free = kGiB / 4;
  expect_only(m, {Severity::Warning, "memory-low", {"256.00 MiB"}});
}

TEST(Diagnosis, FaultsComeFirst) {
  Healthy m;
  m.cuda.gpus[0].persistence = false;
  m.cuda.cudnn = {.name = "cuDNN", .why = "no file"};
  m.cuda.cublaslt = {.name = "cuBLASLt", .why = "no file"};
  const std::vector<MachineIssue> findings = m.findings();
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].code, "no-cublaslt");
  EXPECT_EQ(findings[1].code, "no-cudnn");
  EXPECT_EQ(findings[2].code, "no-persistence");
}

TEST(Diagnosis, CodeForGpus) {
  // Machine code runs on later GPUs of its generation, PTX on all later ones.
  EXPECT_TRUE(has_code_for({"80-real"}, 86, false));
  EXPECT_FALSE(has_code_for({"86-real"}, 80, true));
  EXPECT_FALSE(has_code_for({"80-real"}, 90, true));
  EXPECT_TRUE(has_code_for({"80-virtual"}, 120, true));
  EXPECT_FALSE(has_code_for({"80-virtual"}, 120, false));
  EXPECT_TRUE(has_code_for({"80"}, 90, true));
  EXPECT_TRUE(has_code_for({"80"}, 80, false));
  EXPECT_TRUE(has_code_for({"90a-real"}, 90, false));
  EXPECT_FALSE(has_code_for({"90a-real", "90a-virtual"}, 100, true));
  EXPECT_FALSE(has_code_for({}, 90, true));
}

TEST(Diagnosis, Drivers) {
  EXPECT_EQ(oldest_driver(12080), "525.60.13");
  EXPECT_EQ(oldest_driver(13000), "580.65.06");
  EXPECT_EQ(oldest_driver(14000), "");
  EXPECT_EQ(cuda_version_text(12080), "12.8");
}

}  // namespace
}  // namespace bev::app
