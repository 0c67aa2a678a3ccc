// bevatron bench: whole steps, single ops, the loading of samples, what ranks exchange or a model
// in use, as a table or JSON.
#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

#include "app/bench/bench_verbs.h"
#include "app/cli/cli_flags.h"
#include "app/cli/verb_config.h"
#include "app/cli/verbs.h"
#include "app/launch/launched_rank.h"
#include "base/check.h"
#include "bench/loader_bench.h"
#include "bench/op_bench.h"
#include "bench/op_cases.h"
#include "bench/step_bench.h"
#include "config/parse/arg_scanner.h"
#include "plan/memory_fit.h"

namespace bev::app {

namespace {

constexpr std::array<VerbFlag, 5> kStepFlags{{
    {"--json", "", "print JSON instead of a table"},
    {"--floor", "",
     "also time the step's matrix products alone (on cuda: its attention too), in the same run"},
    {"--breakdown", "", "also trace one step more: where its time goes, by class of op"},
    {"--seconds", "N", "how long to measure; default 10"},
    {"--steps", "N", "at least this many steps; default 5, on cuda 20"},
}};

constexpr std::array<VerbFlag, 4> kLoaderFlags{{
    {"--json", "", "print JSON instead of a table"},
    {"--length", "N", "tokens of a sample [default: 1024]"},
    {"--tokens", "N", "tokens of the file that is made for it [default: 16M]"},
    {"--milliseconds", "N", "how long to measure each case [default: 300]"},
}};

std::string op_names() {
  std::vector<std::string_view> names;
  for (const BenchedOp& op : benched_ops()) names.push_back(op.name);
  return format("{}", fmt::join(names, ", "));
}

// What is timed is what one rank does.
void require_one_rank(const Config& config) {
  BEV_CHECK(config.parallel.ranks == 1, Usage,
            "--threads {}: bench times one rank; legal is 1. The threads of the cpu device are "
            "--device.threads; for several ranks look at the log of train",
            config.parallel.ranks);
}

int bench_steps(std::span<const std::string> args) {
  const auto loaded = config_for({.name = "bench step",
                                  .summary = "Times whole training steps on made-up tokens.",
                                  .own = kStepFlags},
                                 args);
  if (!loaded) return 0;
  require_one_rank(loaded->config);
  require_fit(loaded->config, plan_layout(loaded->config));
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

// The names between the commas.
std::vector<std::string> named_ops(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream rest(list);
  for (std::string name; std::getline(rest, name, ',');) {
    const auto known = benched_ops();
    const bool is_known = std::any_of(known.begin(), known.end(),
                                      [&](const BenchedOp& op) { return op.name == name; });
    BEV_CHECK(is_known, Usage, "--only {}: no such op; there are {}", name, op_names());
    names.push_back(name);
  }
  return names;
}

int bench_single_ops(std::span<const std::string> args) {
  const std::string only_help = format("only these, with commas between: {}", op_names());
  const std::array<VerbFlag, 3> flags{{
      {"--json", "", "print JSON instead of a table"},
      {"--only", "OP,...", only_help},
      {"--milliseconds", "N", "how long to measure each case; default 300"},
  }};
  const auto loaded = config_for(
      {.name = "bench op",
       .summary = "Times every op of a training step by itself, at the shapes of a model.",
       .own = flags},
      args);
  if (!loaded) return 0;
  require_one_rank(loaded->config);
  const std::vector<std::string> only = named_ops(loaded->own_text("--only"));
  const double seconds =
      1e-3 * static_cast<double>(own_integer(*loaded, "--milliseconds", 300, 1, 3600000));
  const OpBench result = bench_ops(loaded->config, only, seconds);
  BEV_CHECK(!result.ops.empty(), Usage, "--only {}: a step of this model has none",
            fmt::join(only, ","));
  fmt::print("{}", loaded->has("--json") ? op_bench_json(result) + "\n" : op_bench_table(result));
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

// Of what times one rank: whether this process is one of several that must not begin. The first of
// them says so; the others end in peace, for launchers end the rest of a job when one fails, and
// the first may not have spoken yet.
bool is_one_of_many(std::string_view what) {
  const std::optional<RankEnvironment> environment = own_environment();
  if (!environment) return false;
  BEV_CHECK(environment->rank != 0, Usage,
            "bench {} times one rank, and a launcher started {} processes; legal is to run it "
            "without a launcher. Several ranks are timed by `bench comm`, and by the log of train",
            what, environment->size);
  return true;
}

}  // namespace

int bench(std::span<const std::string> args) {
  const std::string what = args.empty() ? "" : args.front();
  const std::span<const std::string> rest = args.subspan(args.empty() ? 0 : 1);
  if (what == "comm") return bench_comm(rest);
  if (what == "step" || what == "op" || what == "loader" || what == "generate") {
    if (is_one_of_many(what)) return 0;
    if (what == "generate") return bench_generate(rest);
    if (what == "step") return bench_steps(rest);
    if (what == "op") return bench_single_ops(rest);
    return bench_loading(rest);
  }
  if (asks_for_help(what)) {
    fmt::print(
        "usage: bevatron bench step|op|loader|comm|generate [CONFIG.toml] [--section.field VALUE "
        "...]\n"
        "`bevatron bench step --help` lists the flags of step; so it is with the others.\n");
    return 0;
  }
  throw Error(ErrorKind::Usage, format("bench {}: say what to time: `bench step` (whole training "
                                       "steps), `bench op` (single ops), `bench loader` (samples), "
                                       "`bench comm` (what ranks exchange) or `bench generate` "
                                       "(a model in use)",
                                       what));
}

}  // namespace bev::app
