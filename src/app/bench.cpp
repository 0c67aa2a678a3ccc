// bevatron bench: whole steps, single ops or the loading of samples, as a table or JSON.
#include <algorithm>
#include <array>
#include <cstdio>

#include "app/own_flags.h"
#include "app/verb_config.h"
#include "app/verbs.h"
#include "base/check.h"
#include "bench/loader_bench.h"
#include "bench/op_bench.h"
#include "bench/step_bench.h"
#include "plan/fit.h"

namespace bev::app {

namespace {

constexpr std::array<OwnFlag, 5> kStepFlags{{
    {"--json", "", "print JSON instead of a table"},
    {"--floor", "",
     "also time the step's matrix products alone (on cuda: its attention too), in the same run"},
    {"--breakdown", "", "also trace one step more: where its time goes, by class of op"},
    {"--seconds", "N", "how long to measure; default 10"},
    {"--steps", "N", "at least this many steps; default 5, on cuda 20"},
}};

constexpr std::array<OwnFlag, 3> kOpFlags{{
    {"--json", "", "print JSON instead of a table"},
    {"--only", "OP",
     "only this op: matmul, norm, attention, activate, cross_entropy, adamw, "
     "squared_norm"},
    {"--milliseconds", "N", "how long to measure each op; default 300"},
}};

constexpr std::array<OwnFlag, 4> kLoaderFlags{{
    {"--json", "", "print JSON instead of a table"},
    {"--length", "N", "tokens of a sample [default: 1024]"},
    {"--tokens", "N", "tokens of the file that is made for it [default: 16M]"},
    {"--milliseconds", "N", "how long to measure each case [default: 300]"},
}};

int bench_steps(std::span<const std::string> args) {
  const auto loaded = config_for({.name = "bench step",
                                  .summary = "Times whole training steps on made-up tokens.",
                                  .own = kStepFlags},
                                 args);
  if (!loaded) return 0;
  require_fit(loaded->config, dry_run(loaded->config));
  const int64_t default_steps = loaded->config.device.kind == DeviceKind::Cuda ? 20 : 5;
  const StepBench result =
      bench_step(loaded->config,
                 {.seconds = static_cast<double>(own_integer(*loaded, "--seconds", 10, 0, 86400)),
                  .min_steps = own_integer(*loaded, "--steps", default_steps, 1, 1000000),
                  .floor = loaded->has("--floor"),
                  .breakdown = loaded->has("--breakdown")});
  fmt::print("{}",
             loaded->has("--json") ? step_bench_json(result) + "\n" : step_bench_table(result));
  return 0;
}

int bench_single_ops(std::span<const std::string> args) {
  const auto loaded = config_for({.name = "bench op",
                                  .summary = "Times single ops at the shapes of a model.",
                                  .own = kOpFlags},
                                 args);
  if (!loaded) return 0;
  std::vector<std::string> only;
  if (loaded->has("--only")) {
    only.push_back(loaded->own_text("--only"));
    const std::vector<std::string> known = benchable_ops();
    BEV_CHECK(std::find(known.begin(), known.end(), only.front()) != known.end(), Usage,
              "--only {}: no such op; there are {}", only.front(), fmt::join(known, ", "));
  }
  const double seconds =
      1e-3 * static_cast<double>(own_integer(*loaded, "--milliseconds", 300, 1, 3600000));
  const std::vector<OpBench> results = bench_ops(loaded->config, only, seconds);
  fmt::print("{}", loaded->has("--json") ? op_bench_json(results) + "\n" : op_bench_table(results));
  return 0;
}

int bench_loading(std::span<const std::string> args) {
  const auto flags = flags_for({.name = "bench loader",
                                .summary = "Times how fast samples of a token file become batches, "
                                           "from one thread. The file is made in the temporary "
                                           "folder.",
                                .flags = kLoaderFlags},
                               args);
  if (!flags) return 0;
  const int64_t length = flags->integer("--length", 1024, 1, 1 << 20);
  const int64_t tokens = flags->size("--tokens", 16'000'000, 2 * length, int64_t{1} << 36);
  const double seconds =
      1e-3 * static_cast<double>(flags->integer("--milliseconds", 300, 1, 3600000));
  const std::vector<LoaderBench> results = bench_loader(length, tokens, seconds);
  fmt::print(
      "{}", flags->has("--json") ? loader_bench_json(results) + "\n" : loader_bench_table(results));
  return 0;
}

}  // namespace

int bench(std::span<const std::string> args) {
  const std::string what = args.empty() ? "" : args.front();
  if (what == "step") return bench_steps(args.subspan(1));
  if (what == "op") return bench_single_ops(args.subspan(1));
  if (what == "loader") return bench_loading(args.subspan(1));
  if (what == "--help" || what == "-h") {
    fmt::print(
        "usage: bevatron bench step|op|loader [CONFIG.toml] [--section.field VALUE ...]\n"
        "`bevatron bench step --help`, `bevatron bench op --help` and `bevatron bench loader "
        "--help` list the flags.\n");
    return 0;
  }
  throw Error(ErrorKind::Usage, format("bench {}: say what to time: `bench step` (whole training "
                                       "steps), `bench op` (single ops) or `bench loader` "
                                       "(samples)",
                                       what));
}

}  // namespace bev::app
