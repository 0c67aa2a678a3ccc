#include "golden_runner/places.h"

#include "base/format.h"
#include "ops/make_device.h"

namespace bev::golden {

std::string Place::name() const {
  const std::string_view kind = name_of_choice(device);
  return device == DeviceKind::Cuda ? format("{} {}", kind, name_of_choice(precision))
                                    : std::string(kind);
}

DType Place::dtype() const {
  switch (precision) {
    case Precision::F64: return DType::f64;
    case Precision::Bf16: return DType::bf16;
    case Precision::F16: return DType::f16;
    default: return DType::f32;
  }
}

std::vector<Place> places(const std::string& name, Report& report) {
  std::vector<Place> all{{DeviceKind::Reference, Precision::F64},
                         {DeviceKind::Cpu, Precision::F32}};
  const std::string why = why_no_cuda();
  if (!why.empty()) {
    report.skip(name + " on cuda", why);
    return all;
  }
  for (const Precision precision : {Precision::F32, Precision::Bf16, Precision::F16}) {
    all.push_back({DeviceKind::Cuda, precision});
  }
  return all;
}

}  // namespace bev::golden
