// bevatron version: what this program is and what it found on this machine.
#include <cstdio>
#include <string>
#include <string_view>

#include "app/verbs.h"
#include "base/check.h"
#include "ops/cpu/isa.h"
#include "ops/make_device.h"

namespace bev::app {

namespace {

std::string_view build_kind() {
#ifdef NDEBUG
  return "release";
#else
  return "with assertions";
#endif
}

std::string_view sanitizer() {
#if defined(__SANITIZE_ADDRESS__)
  return ", address sanitizer";
#elif defined(__SANITIZE_THREAD__)
  return ", thread sanitizer";
#else
  return "";
#endif
}

std::string compiler() {
#if defined(__clang__)
  return format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

// What the processor has of what the kernels could use.
std::string cpu_features() {
  std::string list;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const auto note = [&](bool has, std::string_view name) {
    if (has) list += format("{}{}", list.empty() ? "" : " ", name);
  };
  note(__builtin_cpu_supports("avx2"), "avx2");
  note(__builtin_cpu_supports("fma"), "fma");
  note(__builtin_cpu_supports("avx512f"), "avx512f");
  note(__builtin_cpu_supports("avx512bw"), "avx512bw");
  note(__builtin_cpu_supports("avx512dq"), "avx512dq");
  note(__builtin_cpu_supports("avx512vl"), "avx512vl");
  note(__builtin_cpu_supports("avx512bf16"), "avx512bf16");
#endif
  return list.empty() ? "no vector extensions known to us" : list;
}

}  // namespace

int version(std::span<const std::string> args) {
  const bool asks = args.size() == 1 && (args[0] == "--help" || args[0] == "-h");
  if (asks) {
    fmt::print("usage: bevatron version\n\nPrints the version, the build and the processor.\n");
    return 0;
  }
  BEV_CHECK(args.empty(), Usage, "version takes no arguments, but \"{}\" is given", args[0]);
  fmt::print("bevatron {}\n", BEV_VERSION);
  fmt::print("compiler  {}\n", compiler());
  fmt::print("build     {}{}\n", build_kind(), sanitizer());
  fmt::print("devices   reference, cpu (this build has no CUDA)\n");
  fmt::print("cpu       {}\n", cpu_features());
  fmt::print("kernels   {}\n", name_of_choice(cpu::best_isa()));
  fmt::print("threads   {}\n", usable_threads());
  return 0;
}

}  // namespace bev::app
