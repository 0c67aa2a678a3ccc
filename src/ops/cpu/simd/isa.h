// The instruction sets the CPU kernels are built for, and the choice among them at run time.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "config/choices.h"

namespace bev::cpu {

// Each one contains those before it.
enum class Isa : uint8_t { Portable, Avx2, Avx512 };

// Whether this machine can run it.
bool is_supported(Isa isa);

// The last supported one, or the one BEVATRON_ISA names. The environment is read at the first call.
// Usage error when the variable names an unknown or unsupported one.
Isa best_isa();

// The rule behind best_isa(): `name` is the value of the variable, empty when it is not set.
Isa isa_from(std::string_view name);

}  // namespace bev::cpu

namespace bev {

template <>
struct EnumNames<cpu::Isa> {
  static constexpr std::array<std::string_view, 3> names{"portable", "avx2", "avx512"};
};

}  // namespace bev
