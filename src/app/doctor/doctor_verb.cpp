// bevatron doctor: what this machine has for training, what is wrong with it and how to fix it.
#include <array>
#include <cstdio>

#include "app/cli/cli_flags.h"
#include "app/cli/verbs.h"
#include "app/doctor/doctor.h"
#include "base/error.h"
#include "base/format.h"
#include "ops/make_device.h"

namespace bev::app {

namespace {

constexpr std::array<VerbFlag, 2> kDoctorFlags{{
    {"--json", "", "print JSON with stable keys instead of a list"},
    {"--quick", "", "measure nothing"},
}};

constexpr VerbSpec kDoctorVerb{
    .name = "doctor",
    .summary =
        "Says what this machine has for training (processor, GPUs, driver, NVIDIA's "
        "libraries), measures how fast it is, and lists what is wrong and how to fix it. "
        "Exit codes: 0 the best device here can train (a machine without a GPU trains on "
        "its processor), 4 it cannot.",
    .flags = kDoctorFlags};

void measure_cpu(Examination& e) {
  const std::unique_ptr<Device> device = make_device(DeviceKind::Cpu, 0);
  e.cpu = MeasuredDevice{.peak = measure_peak(*device)};
}

// A GPU that looks right and fails at work is a fault too. One that others have filled is not
// measured.
void measure_gpu(Examination& e) {
  constexpr int64_t kNeeded = int64_t{3} << 30;
  if (e.cuda.gpus.empty() || has_fault(e.findings)) return;
  const int64_t free = e.cuda.gpus.front().memory_free;
  if (free > 0 && free < kNeeded) return;
  try {
    const std::unique_ptr<Device> device = make_device(DeviceKind::Cuda, 0);
    e.gpu = MeasuredDevice{.peak = measure_peak(*device), .transfers = measure_transfers(*device)};
  } catch (const Error& error) {
    e.findings.insert(e.findings.begin(),
                      {Severity::Fault, "gpu-fails", format("the GPU fails: {}", error.what()),
                       "nvidia-smi -q and dmesg say whether it is damaged or its driver is"});
  }
}

}  // namespace

int doctor(std::span<const std::string> args) {
  const auto flags = flags_for(kDoctorVerb, args);
  if (!flags) return 0;
  Examination e{.host = host_info(), .cuda = cuda_facts(cuda::Depth::Libraries)};
  e.findings = diagnose(e.host, e.cuda);
  if (!flags->has("--quick")) {
    measure_cpu(e);
    measure_gpu(e);
  }
  fmt::print("{}", flags->has("--json") ? doctor_json(e) + "\n" : doctor_text(e));
  return has_fault(e.findings) ? exit_code(ErrorKind::Device) : 0;
}

}  // namespace bev::app
