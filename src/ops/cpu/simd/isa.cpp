#include "ops/cpu/simd/isa.h"

#include <cstdlib>
#include <string>

#include "base/check.h"

namespace bev::cpu {

namespace {

constexpr std::array<Isa, 3> kAll{Isa::Portable, Isa::Avx2, Isa::Avx512};

std::string supported_names() {
  std::string names;
  for (const Isa isa : kAll) {
    if (!is_supported(isa)) continue;
    if (!names.empty()) names += ", ";
    names += name_of_choice(isa);
  }
  return names;
}

}  // namespace

bool is_supported(Isa isa) {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  switch (isa) {
    case Isa::Portable: return true;
    case Isa::Avx2: return avx2;
    case Isa::Avx512:
      return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  return false;
}

Isa isa_from(std::string_view name) {
  Isa best = Isa::Portable;
  for (const Isa isa : kAll) {
    if (!is_supported(isa)) continue;
    if (name == name_of_choice(isa)) return isa;
    best = isa;
  }
  BEV_CHECK(name.empty(), Usage, "BEVATRON_ISA is \"{}\"; this machine has: {}", name,
            supported_names());
  return best;
}

Isa best_isa() {
  static const Isa best = [] {
    const char* name = std::getenv("BEVATRON_ISA");
    return isa_from(name == nullptr ? "" : name);
  }();
  return best;
}

}  // namespace bev::cpu
