#include "app/cli/build_info.h"
#include "app/doctor/doctor.h"
#include "base/format.h"
#include "base/json.h"
#include "device/gpu_peaks.h"

namespace bev::app {

namespace {

std::string bytes_text(int64_t bytes) { return as_bytes(static_cast<double>(bytes)); }

// Lines with a name in front; the lines of one name follow each other.
class Sheet {
 public:
  void add(std::string_view name, const std::string& value) {
    text_ += format("{:<10}{}\n", name == last_ ? "" : name, value);
    last_ = name;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_, last_;
};

// 1.2e12 -> "1.20 T", 3.4e9 -> "3.40 G".
std::string scaled(double value) {
  return value >= 1e12 ? format("{:.2f} T", value * 1e-12) : format("{:.2f} G", value * 1e-9);
}

void add_program(Sheet& sheet, const CudaInfo& cuda) {
  sheet.add("program", format("bevatron {}, {}, {}", program_version(), compiler(), build_kind()));
  sheet.add("program",
            cuda.is_built
                ? format("CUDA {}, code for {}, {} cuDNN", cuda_version_text(cuda.built_with),
                         fmt::join(cuda.built_for, " "), cuda.has_cudnn ? "with" : "without")
                : "without CUDA");
}

void add_cpu(Sheet& sheet, const HostInfo& host, const std::optional<MeasuredDevice>& measured) {
  sheet.add("cpu", format("{}, {} threads", host.processor.empty() ? "unknown" : host.processor,
                          host.threads));
  sheet.add("cpu", format("kernels for {}; the processor has {}", host.kernels,
                          host.extensions.empty() ? "no vector extensions known to us"
                                                  : format("{}", fmt::join(host.extensions, " "))));
  sheet.add("cpu", format("{} memory, {} free", bytes_text(host.memory_total),
                          bytes_text(host.memory_free)));
  if (measured) {
    sheet.add("cpu", format("measured: f32 products {}FLOP/s, memory {}B/s",
                            scaled(measured->peak.flops), scaled(measured->peak.bandwidth)));
  }
}

std::string library_text(const LibraryInfo& library) {
  if (!library.is_loaded()) return format("{:<9} not found", library.name);
  return format("{:<9} {:<10} {}", library.name,
                library.version.empty() ? "unknown" : library.version, library.path);
}

void add_libraries(Sheet& sheet, const CudaInfo& cuda) {
  if (!cuda.is_built) return;
  sheet.add("driver", cuda.driver.empty() && cuda.driver_cuda == 0
                          ? "none"
                          : format("{}, for CUDA {}",
                                   cuda.driver.empty() ? "of unknown version" : cuda.driver,
                                   cuda_version_text(cuda.driver_cuda)));
  for (const LibraryInfo* library : {&cuda.cublaslt, &cuda.cudnn, &cuda.nccl, &cuda.nvml}) {
    sheet.add("libraries", library_text(*library));
  }
}

void add_gpu(Sheet& sheet, const GpuInfo& gpu) {
  const std::string name = format("gpu {}", gpu.index);
  sheet.add(name, format("{}, sm_{}, {} multiprocessors", gpu.name, gpu.compute_capability,
                         gpu.multiprocessors));
  sheet.add(name,
            format("{} memory{}", bytes_text(gpu.memory_total),
                   gpu.memory_free > 0 ? format(", {} free", bytes_text(gpu.memory_free)) : ""));
  std::string state = format("at most {} MHz", gpu.max_clock_mhz);
  if (gpu.clock_mhz > 0) {
    state = format("{} of {} MHz, memory {} MHz", gpu.clock_mhz, gpu.max_clock_mhz,
                   gpu.memory_clock_mhz);
  }
  if (gpu.ecc) state += format(", ECC {}", *gpu.ecc ? "on" : "off");
  if (gpu.persistence) state += format(", persistence {}", *gpu.persistence ? "on" : "off");
  sheet.add(name, state);
}

void add_gpus(Sheet& sheet, const Examination& e) {
  for (const GpuInfo& gpu : e.cuda.gpus) {
    add_gpu(sheet, gpu);
    if (gpu.index > 0 || !e.gpu) continue;
    const MachinePeak& peak = e.gpu->peak;
    const double table = dense_bf16_peak(gpu.name);
    const std::string share =
        table > 0 ? format(" ({:.0f} % of {}FLOP/s)", 100 * peak.flops / table, scaled(table)) : "";
    sheet.add("gpu 0", format("measured: bf16 products of 8192 cubed {}FLOP/s{}, copies {}B/s",
                              scaled(peak.flops), share, scaled(peak.bandwidth)));
    if (!e.gpu->transfers) continue;
    sheet.add("gpu 0",
              format("measured: from pinned host memory {}B/s, back {}B/s",
                     scaled(e.gpu->transfers->to_device), scaled(e.gpu->transfers->from_device)));
  }
}

std::string conclusion(const Examination& e) {
  if (has_fault(e.findings)) {
    return "the GPU cannot be used before this is fixed; --device cpu trains without it\n";
  }
  if (e.cuda.gpus.empty()) return "no GPU: training runs on the CPU\n";
  return format("training runs on {}\n", e.cuda.gpus.front().name);
}

Json library_json(const LibraryInfo& library) {
  Json json = {{"found", library.is_loaded()}};
  if (library.is_loaded()) {
    json["path"] = library.path;
    json["version"] = library.version;
  } else {
    json["why"] = library.why;
  }
  return json;
}

Json gpu_json(const GpuInfo& gpu) {
  Json processes = Json::array();
  for (const GpuProcess& p : gpu.processes) {
    processes.push_back({{"id", p.id}, {"name", p.name}, {"bytes", p.bytes}});
  }
  Json json = {{"index", gpu.index},
               {"name", gpu.name},
               {"compute_capability", gpu.compute_capability},
               {"multiprocessors", gpu.multiprocessors},
               {"memory_bytes", gpu.memory_total},
               {"memory_free_bytes", gpu.memory_free},
               {"clock_mhz", gpu.clock_mhz},
               {"max_clock_mhz", gpu.max_clock_mhz},
               {"memory_clock_mhz", gpu.memory_clock_mhz},
               {"processes", processes}};
  if (gpu.ecc) json["ecc"] = *gpu.ecc;
  if (gpu.persistence) json["persistence"] = *gpu.persistence;
  return json;
}

Json measured_json(const MeasuredDevice& measured) {
  Json json = {{"gemm_flops_per_second", measured.peak.flops},
               {"product_flops_per_second", measured.peak.flops},  // earlier name, until 0.2
               {"bandwidth_bytes_per_second", measured.peak.bandwidth}};
  if (measured.transfers) {
    json["to_device_bytes_per_second"] = measured.transfers->to_device;
    json["from_device_bytes_per_second"] = measured.transfers->from_device;
  }
  return json;
}

Json cuda_json(const CudaInfo& cuda) {
  Json json = {{"built", cuda.is_built}};
  if (!cuda.is_built) return json;
  json["built_with"] = cuda_version_text(cuda.built_with);
  json["built_for"] = cuda.built_for;
  json["built_with_cudnn"] = cuda.has_cudnn;
  json["driver"] = cuda.driver;
  json["driver_cuda"] = cuda.driver_cuda > 0 ? cuda_version_text(cuda.driver_cuda) : "";
  json["libraries"] = {{"cublaslt", library_json(cuda.cublaslt)},
                       {"cudnn", library_json(cuda.cudnn)},
                       {"cudart", library_json(cuda.runtime)},
                       {"nccl", library_json(cuda.nccl)},
                       {"nvml", library_json(cuda.nvml)}};
  Json gpus = Json::array();
  for (const GpuInfo& gpu : cuda.gpus) gpus.push_back(gpu_json(gpu));
  json["gpus"] = gpus;
  return json;
}

}  // namespace

std::string doctor_text(const Examination& e) {
  Sheet sheet;
  add_program(sheet, e.cuda);
  add_cpu(sheet, e.host, e.cpu);
  add_libraries(sheet, e.cuda);
  add_gpus(sheet, e);
  for (const MachineIssue& finding : e.findings) {
    sheet.add(name_of(finding.severity),
              format("{}{}{}", finding.what, finding.fix.empty() ? "" : "; ", finding.fix));
  }
  return sheet.text() + conclusion(e);
}

std::string doctor_json(const Examination& e) {
  Json findings = Json::array();
  for (const MachineIssue& f : e.findings) {
    findings.push_back({{"severity", name_of(f.severity)},
                        {"code", f.code},
                        {"what", f.what},
                        {"fix", f.fix},
                        {"mend", f.fix}});  // earlier name, until 0.2
  }
  Json json = {{"version", program_version()},
               {"compiler", compiler()},
               {"build", build_kind()},
               {"cpu",
                {{"name", e.host.processor},
                 {"threads", e.host.threads},
                 {"extensions", e.host.extensions},
                 {"kernels", e.host.kernels},
                 {"memory_bytes", e.host.memory_total},
                 {"memory_free_bytes", e.host.memory_free},
                 {"locked_memory_limit_bytes", e.host.locked_memory_limit}}},
               {"cuda", cuda_json(e.cuda)},
               {"findings", findings},
               {"device", has_fault(e.findings) ? ""
                          : e.cuda.gpus.empty() ? "cpu"
                                                : "cuda"}};
  if (e.cpu) json["cpu"]["measured"] = measured_json(*e.cpu);
  if (e.gpu) json["cuda"]["measured"] = measured_json(*e.gpu);
  return json.dump(2);
}

}  // namespace bev::app
