// bevatron version: what this program is and what it found on this machine.
#include <cstdio>
#include <string>

#include "app/cli/build_info.h"
#include "app/cli/verbs.h"
#include "app/doctor/doctor.h"
#include "base/check.h"
#include "config/parse/arg_scanner.h"
#include "ops/make_device.h"

namespace bev::app {

namespace {

std::string cuda_text(const CudaInfo& cuda) {
  if (!cuda.is_built) return "not in this build";
  return format("{}, for {}", cuda_version_text(cuda.built_with), fmt::join(cuda.built_for, " "));
}

std::string devices_text() {
  const std::string why = why_no_cuda();
  return why.empty() ? "reference, cpu, cuda" : format("reference, cpu (not cuda: {})", why);
}

void print_gpus(const CudaInfo& cuda) {
  if (!cuda.driver.empty()) {
    fmt::print("driver    {}, for CUDA {}\n", cuda.driver, cuda_version_text(cuda.driver_cuda));
  }
  for (const GpuInfo& gpu : cuda.gpus) {
    fmt::print("gpu {:<5} {}, sm_{}, {}\n", gpu.index, gpu.name, gpu.compute_capability,
               as_bytes(static_cast<double>(gpu.memory_total)));
  }
}

}  // namespace

int version(std::span<const std::string> args) {
  if (args.size() == 1 && asks_for_help(args[0])) {
    fmt::print(
        "usage: bevatron version\n\nPrints the version, the build, the processor and the GPUs. "
        "`bevatron doctor` says more.\n");
    return 0;
  }
  BEV_CHECK(args.empty(), Usage, "version takes no arguments, but \"{}\" is given", args[0]);
  const HostInfo host = host_info();
  const CudaInfo cuda = cuda_facts(cuda::Depth::Gpus);
  fmt::print("bevatron {}\n", program_version());
  fmt::print("compiler  {}\n", compiler());
  fmt::print("build     {}\n", build_kind());
  fmt::print("cuda      {}\n", cuda_text(cuda));
  fmt::print("devices   {}\n", devices_text());
  fmt::print("cpu       {}\n", host.extensions.empty()
                                   ? "no vector extensions known to us"
                                   : format("{}", fmt::join(host.extensions, " ")));
  fmt::print("kernels   {}\n", host.kernels);
  fmt::print("threads   {}\n", host.threads);
  print_gpus(cuda);
  return 0;
}

}  // namespace bev::app
