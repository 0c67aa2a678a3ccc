#include "device/gpu_peaks.h"

#include <array>

namespace bev {

namespace {

struct GpuPeak {
  std::string_view model;
  double tflops;
};

// NVIDIA's data sheets, without sparsity. Consumer cards: with f32 sums, half of what they reach
// with f16 sums. Of two entries that a name contains, the first counts: the longer names come
// first.
constexpr std::array kPeaks{
    GpuPeak{"GB200", 2500},       GpuPeak{"B200", 2250},     GpuPeak{"B100", 1750},
    GpuPeak{"GH200", 989},        GpuPeak{"H200 NVL", 835},  GpuPeak{"H200", 989},
    GpuPeak{"H100 NVL", 835},     GpuPeak{"H100 PCIe", 756}, GpuPeak{"H100", 989},
    GpuPeak{"H800 PCIe", 756},    GpuPeak{"H800", 989},      GpuPeak{"H20", 148},
    GpuPeak{"A100", 312},         GpuPeak{"A800", 312},      GpuPeak{"A30", 165},
    GpuPeak{"A10G", 70},          GpuPeak{"A10", 125},       GpuPeak{"A40", 150},
    GpuPeak{"L40S", 362},         GpuPeak{"L40", 181},       GpuPeak{"L4", 121},
    GpuPeak{"RTX 6000 Ada", 364}, GpuPeak{"RTX A6000", 155}, GpuPeak{"RTX 5090", 210},
    GpuPeak{"RTX 4090", 165},     GpuPeak{"RTX 4080", 97},   GpuPeak{"RTX 3090", 71},
};

bool is_word_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// Whether the name contains the model as whole words: "L4" is not in "L40".
bool names(std::string_view gpu_name, std::string_view model) {
  for (size_t at = gpu_name.find(model); at != std::string_view::npos;
       at = gpu_name.find(model, at + 1)) {
    const size_t end = at + model.size();
    const bool begins = at == 0 || !is_word_byte(gpu_name[at - 1]);
    if (begins && (end == gpu_name.size() || !is_word_byte(gpu_name[end]))) return true;
  }
  return false;
}

}  // namespace

double dense_bf16_peak(std::string_view gpu_name) {
  for (const GpuPeak& peak : kPeaks) {
    if (names(gpu_name, peak.model)) return peak.tflops * 1e12;
  }
  return 0;
}

}  // namespace bev
