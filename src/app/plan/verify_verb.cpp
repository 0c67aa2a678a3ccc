// bevatron verify: the same few steps under two layouts, compared tensor by tensor.
#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <vector>

#include "app/cli/console.h"
#include "app/cli/verb_config.h"
#include "app/cli/verbs.h"
#include "app/launch/launched_rank.h"
#include "base/check.h"
#include "config/parse/notation.h"
#include "config/parse/toml.h"
#include "parallel/parallel_layout.h"
#include "plan/memory_fit.h"
#include "verify/layout_name.h"
#include "verify/run_comparison.h"
#include "verify/shrink.h"

namespace bev::app {

namespace {

constexpr std::array<VerbFlag, 7> kVerifyFlags{{
    {"--layout", "LAYOUT",
     "the layout to try, such as tp2.sp.pp2.dp2.zero1.chunks2.gpipe; default: that of the "
     "configuration"},
    {"--against", "LAYOUT", "the layout to compare with; default: one, a single rank"},
    {"--steps", "N", "how many steps; default 3"},
    {"--tolerance", "X",
     "largest relative difference that counts as equal; default 1e-12, in f32 2e-5, in bf16 and "
     "f16 0.5: biases that begin at zero move by the learning rate however small their gradient "
     "is"},
    {"--shrink", "",
     "the smallest shapes that both layouts can divide, all options kept (default)"},
    {"--whole", "", "the shapes of the configuration as they are"},
    {"--json", "", "print JSON with stable keys instead of tables"},
}};

// Where all ranks are threads of one machine.
constexpr int64_t kMostRanks = 256;

// What rounding alone makes of a few steps.
double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return 1e-12;
    case DType::f32: return 2e-5;
    default: return 0.5;
  }
}

void complete(Config& config) {
  if (config.train.micro_batch == 0) config.train.micro_batch = 1;
}

// float64 unless the command line says otherwise: what a file says is about the real training.
Arithmetic arithmetic_for(const LoadedConfig& loaded) {
  const auto is_flag = [&](const char* field) {
    const auto origin = loaded.origins.find(field);
    return origin != loaded.origins.end() && origin->second.kind == OriginKind::Flag;
  };
  const DeviceConfig& asked = loaded.config.device;
  if (!is_flag("device.kind")) return {DeviceKind::Reference, Precision::Auto};
  if (is_flag("device.precision")) return {asked.kind, asked.precision};
  return {asked.kind, asked.kind == DeviceKind::Reference ? Precision::Auto : Precision::F32};
}

double tolerance_for(const LoadedConfig& loaded, DType dtype) {
  if (!loaded.has("--tolerance")) return rounding_of(dtype);
  const std::string text = loaded.own_text("--tolerance");
  const auto value = parse_real(text);
  BEV_CHECK(value && *value >= 0, Usage, "--tolerance {}: a number of at least 0 is wanted", text);
  return *value;
}

// A layout with the same axes that a small machine can run.
std::string smaller_layout(ParallelConfig layout) {
  const int64_t copies = layout.ranks / (layout.tensor * layout.pipeline);
  layout.tensor = std::min<int64_t>(layout.tensor, 2);
  layout.pipeline = std::min<int64_t>(layout.pipeline, 2);
  layout.ranks = layout.tensor * layout.pipeline * std::min<int64_t>(copies, 2);
  return layout_text(layout);
}

// What is wrong with a layout of this configuration.
void add_problems(const LoadedConfig& loaded, const Config& divided, std::string_view flag,
                  std::vector<Problem>& problems) {
  const std::string name = layout_text(divided.parallel);
  const int64_t ranks = divided.parallel.ranks;
  if (ranks > kMostRanks) {
    problems.push_back({.what = format("the layout {} has {} ranks", name, ranks),
                        .where = std::string(flag),
                        .why = format("each of them is a thread here, at most {}", kMostRanks),
                        .legal = format("a smaller one that divides the same: {} {}", flag,
                                        smaller_layout(divided.parallel))});
  }
  Origins origins = loaded.origins;
  for (const Field& field : fields()) {
    if (field.section() == "parallel")
      origins[field.path] = {OriginKind::Flag, format("{} {}", flag, name)};
  }
  for (Problem& problem : check_config(divided, Purpose::Plan, origins))
    problems.push_back(std::move(problem));
}

std::string rank_text(const Config& config) {
  return format("{} ({})", layout_text(config.parallel), describe(layout_of(config)));
}

void print_model(const Config& whole, const Config& run) {
  print_stderr("kept      {}\n", options_text(run));
  const std::string changes = shrunk_text(whole, run);
  if (!changes.empty()) print_stderr("shrunk    {}\n", changes);
}

LayoutPair checked_pair(const LoadedConfig& loaded, const Config& config) {
  const ParallelConfig tried =
      loaded.has("--layout") ? parse_layout(loaded.own_text("--layout")) : loaded.config.parallel;
  const ParallelConfig known = parse_layout(loaded.own_text("--against"));
  BEV_CHECK(layout_text(tried) != layout_text(known), Usage,
            "both layouts are {}: there is nothing to compare; --layout or --against says another, "
            "such as --layout tp2",
            layout_text(known));
  LayoutPair pair = under_layouts(config, tried, known);
  std::vector<Problem> problems;
  add_problems(loaded, pair.first, "--layout", problems);
  add_problems(loaded, pair.second, "--against", problems);
  if (tried.tensor != known.tensor && config.optim.has_shard_norms()) {
    problems.push_back({.what = format("{} against {}: these layouts train differently",
                                       layout_text(tried), layout_text(known)),
                        .where = "--layout, --against, optim.kind",
                        .why = "the optimizer uses the norm of each tensor-parallel shard",
                        .legal = "layouts with equal tensor, optim.lamb_norms whole or "
                                 "optim.lambtp_solution 1"});
  }
  throw_if_any(problems, "the layouts");
  return pair;
}

struct Trial {
  const LoadedConfig& loaded;
  const Config& whole;  // as the user has it
  const LayoutPair& pair;
  int64_t steps;
  double tolerance;
};

void print_trial(const Trial& t) {
  print_stderr("layouts   {} against {}, {} steps on {}, tolerance {:g}\n", rank_text(t.pair.first),
               rank_text(t.pair.second), t.steps, name_of_choice(t.pair.first.device.kind),
               t.tolerance);
  print_model(t.whole, t.pair.first);
}

// Compares what came of the first layout with what comes of the second.
int report(const Trial& t, const std::vector<StepOutcome>& first) {
  const VerifyReport report{
      .layouts = {layout_text(t.pair.first.parallel), layout_text(t.pair.second.parallel)},
      .device = t.pair.first.device.kind,
      .tolerance = t.tolerance,
      .comparison = compare_runs(first, train_layout(t.pair.second, t.steps))};
  fmt::print("{}\n", t.loaded.has("--json") ? verify_json(report) : verify_table(report));
  if (const auto difference = report.comparison.first_beyond(t.tolerance))
    throw Error(ErrorKind::Numerics, difference_text(*difference, t.tolerance));
  if (!t.loaded.has("--json")) fmt::print("{}\n", agreement_text(report));
  return 0;
}

// The first layout on the processes of the launcher; the second is the first process's alone.
int verify_launched(const RankEnvironment& environment, const Trial& t) {
  const Config& config = t.pair.first;
  BEV_CHECK(layout_of(config).world() == environment.size, Usage,
            "the layout {} has {} ranks, and a launcher started {} processes: legal are as many",
            layout_text(config.parallel), layout_of(config).world(), environment.size);
  const Console console(environment.rank == 0);
  LaunchedRank launched(environment, config, console);
  int code = 0;
  launched.run([&] {
    launched.require_same_on_ranks("the configuration", print_config(config, {}));
    const std::unique_ptr<Device> device = rank_device(config);
    const std::unique_ptr<Communicator> world = launched.make_world(*device);
    if (launched.rank() == 0) {
      print_trial(t);
      console.log("ranks     {}\n", launched.describe());
    }
    const std::vector<StepOutcome> outcome = train_layout(config, t.steps, *device, *world);
    if (launched.rank() == 0) code = report(t, outcome);
  });
  return code;
}

}  // namespace

int verify(std::span<const std::string> args) {
  const std::optional<RankEnvironment> environment = own_environment();
  const std::string summary = format(
      "Trains a few steps under two layouts from the same seed, on made-up tokens of which some do "
      "not count, with ranks as threads in float64 (--device cpu or cuda: f32, "
      "or --device.precision), and compares losses, "
      "gradients and weights after every step. Exits 0 when they agree and 6 when they differ, "
      "naming the first tensor that does. The bias of the keys is left out where softmax cancels "
      "it: its gradient is rounding noise. A layout is any of these with dots or commas between: "
      "{}.",
      layout_parts());
  const auto loaded = config_for(
      {.name = "verify", .summary = summary, .own = kVerifyFlags, .complete = complete}, args);
  if (!loaded) return 0;
  BEV_CHECK(!loaded->has("--shrink") || !loaded->has("--whole"), Usage,
            "--shrink and --whole exclude each other");
  const int64_t steps = own_integer(*loaded, "--steps", 3, 1, 1000000);
  const Arithmetic arithmetic = arithmetic_for(*loaded);
  const LayoutPair whole = checked_pair(*loaded, comparable(loaded->config, arithmetic, steps));
  const LayoutPair pair = loaded->has("--whole") ? whole : shrink(whole, steps);
  const double tolerance = tolerance_for(*loaded, resolve_dtype(pair.first));
  for (const Config* config : {&pair.first, &pair.second})
    require_fit(*config, plan_layout(*config));
  const Trial trial{*loaded, whole.first, pair, steps, tolerance};
  if (!environment) {
    print_trial(trial);
    return report(trial, train_layout(pair.first, steps));
  }
  return verify_launched(*environment, trial);
}

}  // namespace bev::app
