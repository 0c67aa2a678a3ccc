// The flags of verbs that use a trained model: where it runs.
#pragma once

#include <array>

#include "app/own_flags.h"
#include "config/config.h"

namespace bev::app {

inline constexpr OwnFlag kThreadsFlag{"--threads", "N", "cpu threads [default: all]"};
inline constexpr OwnFlag kDeviceFlag{"--device", "NAME", "cpu or reference [default: cpu]"};

// REQUIRES: the verb has both flags.
inline DeviceConfig device_from_flags(const FlagValues& flags) {
  constexpr std::array<std::string_view, 2> kNames{"cpu", "reference"};
  DeviceConfig device;
  device.kind = flags.choice("--device", 0, kNames) == 0 ? DeviceKind::Cpu : DeviceKind::Reference;
  device.threads = flags.integer("--threads", 0, 0, 4096);
  return device;
}

}  // namespace bev::app
