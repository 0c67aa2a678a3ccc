// The flags of verbs that use a trained model: where it runs.
#pragma once

#include <array>

#include "app/cli/cli_flags.h"
#include "config/config.h"
#include "ops/make_device.h"

namespace bev::app {

inline constexpr OwnFlag kThreadsFlag{"--threads", "N", "cpu threads [default: all]"};
inline constexpr OwnFlag kDeviceFlag{"--device", "NAME",
                                     "auto, cuda, cpu or reference [default: auto]"};

inline constexpr OwnFlag kPrecisionFlag{
    "--precision", "NAME",
    "f32, bf16, fp16 or f64 [default: bf16 on cuda, f32 on cpu, f64 on reference]"};

// REQUIRES: the verb has all three flags.
inline DeviceConfig device_from_flags(const FlagValues& flags) {
  constexpr std::array kKinds{DeviceKind::Auto, DeviceKind::Cuda, DeviceKind::Cpu,
                              DeviceKind::Reference};
  std::array<std::string_view, kKinds.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = name_of_choice(kKinds[i]);
  DeviceConfig device;
  device.kind = kKinds[static_cast<size_t>(flags.choice("--device", 0, names))];
  if (device.kind == DeviceKind::Auto) device.kind = automatic_device();
  const auto precision = flags.choice("--precision", 0, EnumNames<Precision>::names);
  device.precision = static_cast<Precision>(precision);
  device.threads = flags.integer("--threads", 0, 0, 4096);
  return device;
}

}  // namespace bev::app
