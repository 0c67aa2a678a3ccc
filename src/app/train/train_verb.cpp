// bevatron train: plan, train, write the model.
#include <array>
#include <cstdio>
#include <optional>
#include <sstream>

#include "app/cli/console.h"
#include "app/cli/verb_config.h"
#include "app/cli/verbs.h"
#include "app/launch/launched_rank.h"
#include "app/train/run_start.h"
#include "app/train/train_rank.h"
#include "app/train/training_printer.h"
#include "base/check.h"
#include "checkpoint/checkpoint_folder.h"
#include "comm/thread_communicator.h"
#include "config/parse/notation.h"
#include "config/parse/toml.h"
#include "data/training_data.h"
#include "ops/make_device.h"
#include "plan/memory_fit.h"
#include "plan/plan_report.h"
#include "report/slowest_rank.h"

namespace bev::app {

namespace {

constexpr std::array<VerbFlag, 1> kTrainFlags{{
    {"--dry-run", "", "check configuration, memory, data and output, print the plan and stop"},
}};

// Where ranks are threads.
constexpr int kMostThreads = 256;

DeviceConfig device_of_rank(const Config& config, bool shares_gpu) {
  DeviceConfig device = config.device;
  device.threads = threads_of_rank(config);
  // Ranks that share a GPU disturb each other's timing.
  if (shares_gpu) device.autotune = false;
  return device;
}

// The first rank of all, or the only one here.
RankResult train_ranks(const RunOutput& out, const TrainingData& data, LaunchedRank* launched,
                       const Console& console) {
  if (launched != nullptr) {
    const std::unique_ptr<Device> device =
        make_device(device_of_rank(out.config, launched->shares_gpu()));
    const std::unique_ptr<Communicator> world = launched->make_world(*device);
    console.log("ranks     {}\n          {}\n", launched->describe(), launched->binding());
    return train_rank(out, data, *device, *world, &console);
  }
  RankResult first;
  const int ranks = out.planned.layout.world();
  const std::chrono::duration<double, std::ratio<60>> limit(out.config.parallel.timeout_minutes);
  run_ranks(ranks, std::chrono::duration_cast<std::chrono::milliseconds>(limit),
            [&](Communicator& world) {
              const std::unique_ptr<Device> device =
                  make_device(device_of_rank(out.config, ranks > 1));
              const bool is_first = world.rank() == 0;
              const RankResult result =
                  train_rank(out, data, *device, world, is_first ? &console : nullptr);
              if (is_first) first = result;
            });
  return first;
}

// The rank whose words are read: the first of those that print.
int speaker_of(const LogConfig& log, int ranks) {
  const auto printing = RankList::parse(log.ranks);
  for (int rank = 0; rank < ranks; ++rank)
    if (printing->has(rank)) return rank;
  return 0;
}

// Trains and saves. What the run printed to people is on stderr, its record on stdout.
void run_training(const LoadedConfig& loaded, const Preflight& preflight, LaunchedRank* launched,
                  StopSignal& stop, const Console& console) {
  // What has been trained is written first, from now on.
  stop.defer();
  const Config& config = preflight.config();
  const bool is_first = launched == nullptr || launched->rank() == 0;
  const RunDirectory directory(config.train.output);
  const std::string config_text = print_config(config, loaded.origins);
  std::optional<FolderLock> lock;
  // What trains nothing changes nothing.
  const bool writes = is_first && !config.train.skip_train;
  if (writes && !save_folder(config).empty()) lock.emplace(save_folder(config));
  std::optional<RunRecorder> record;
  if (writes) record.emplace(config, preflight.plan(), config_text, console);
  const int ranks = preflight.plan().layout.world();
  RankTimesBoard board(ranks);
  RunOutput out{.config = config,
                .planned = preflight.plan(),
                .resume_points = preflight.resume_points(),
                .config_text = config_text,
                .directory = directory,
                .record = record ? &*record : nullptr,
                .speaker = speaker_of(config.log, launched == nullptr ? 1 : ranks),
                .stop = stop,
                .report_times = [&](int rank, const RankTimes& t) { board.report(rank, t); },
                .all_times = [&] { return board.all(); }};
  if (launched != nullptr) {
    launched->control().activity().at_step(1);
    out.report_times = [&](int, const RankTimes& t) {
      launched->control().report_times(t);
      launched->control().activity().at_step(t.step + 1);
    };
    out.all_times = [&] { return launched->control().times(); };
  }
  try {
    const RankResult result = train_ranks(out, preflight.data(), launched, console);
    const bool is_bad = result.summary.ending >= ExitReason::NonFinite || !result.unsaved.empty();
    if (is_bad && launched != nullptr) launched->end_together();
    require_good_end(result.summary, result.saved);
    BEV_CHECK(result.unsaved.empty(), Data, "the last checkpoint is not saved: {}; {}",
              result.unsaved, result.saved);
    const auto failure = record ? record->failure() : std::nullopt;
    BEV_CHECK(!failure, Data, "{}; {}", *failure, result.saved);
    if (record) record->ended(ending_words(result.summary), 0);
    if (result.wrote_model) print_next_steps(console, config);
  } catch (const Error& error) {
    if (record) record->ended(error.what(), exit_code(error.kind));
    throw;
  }
}

// The configuration as ranks compare it: where a value comes from does not count.
std::string values_of(const Config& config) {
  constexpr std::string_view kOrigin = "# default";
  std::istringstream lines(print_config(config, {}));
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(kOrigin)) line.resize(line.size() - kOrigin.size());
    line.resize(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// What ranks compare: all of them see the same folder.
std::string checkpoints_text(const ResumePoints& points) {
  std::string text;
  for (const CheckpointPlace& place : points.places)
    text += format("iteration {}\n", place.iteration);
  return text;
}

void run_as_rank(const RankEnvironment& environment, LoadedConfig& loaded, StopSignal& stop,
                 const Console& console) {
  Config& config = loaded.config;
  const int rank = environment.rank;
  // A rank that waits for others has nothing to lose; one that has met them ends with them.
  LaunchedRank launched(environment, config, console);
  stop.defer();
  launched.run([&] {
    launched.require_same_on_ranks("the configuration", values_of(config));
    config.device.threads = launched.threads(config.device.threads);
    const Preflight preflight(config, launched.sharing_memory(config.device.kind), rank == 0);
    std::string data;
    launched.require_all_well([&] {
      preflight.require();
      data = fingerprint(preflight.data());
    });
    launched.require_same_on_ranks("the data", data);
    launched.require_same_on_ranks("the checkpoint", checkpoints_text(preflight.resume_points()));
    print_start(console, preflight.config(), preflight);
    run_training(loaded, preflight, &launched, stop, console);
  });
}

int train_launched(const RankEnvironment& environment, LoadedConfig& loaded, StopSignal& stop) {
  const Config& config = loaded.config;
  const int rank = environment.rank;
  const Console console(
      RankList::parse(config.log.ranks)->has(rank),
      config.train.output.empty() ? "" : RunDirectory(config.train.output).rank_log(rank));
  try {
    run_as_rank(environment, loaded, stop, console);
  } catch (const std::exception& error) {
    console.log_to_file(format("bevatron: error: {}\n", error.what()));
    throw;
  }
  return 0;
}

// `launched`: see ConfigVerb.
std::optional<LoadedConfig> train_config(std::span<const std::string> args, int launched,
                                         bool prints) {
  return config_for({.name = "train",
                     .summary = "Trains a model and writes it, with its log and its "
                                "configuration, into the folder train.output.",
                     .own = kTrainFlags,
                     .purpose = Purpose::Train,
                     .launched = launched,
                     .prints = prints},
                    args);
}

// Ranks that share the memory of this machine or of its GPU, as a run would have them. A launcher
// gives each rank a GPU, and a number of ranks that needs one but has none says nothing of
// machines.
int sharing_memory(const Config& config, int local_ranks) {
  const bool is_gpu = config.device.kind == DeviceKind::Cuda;
  const bool are_threads = local_ranks == 0 && config.parallel.ranks <= kMostThreads;
  if (are_threads && !(is_gpu && free_memory(DeviceKind::Cuda) == 0)) return kAllRanks;
  return is_gpu ? 1 : std::max(1, local_ranks);
}

// `local_ranks`: processes of a launcher on each machine; 0: ranks are threads.
void check_run(const LoadedConfig& loaded, int local_ranks) {
  const Config& config = loaded.config;
  const Preflight preflight(config, sharing_memory(config, local_ranks), true);
  fmt::print("{}", plan_table(preflight.layout()));
  std::fflush(stdout);  // before what follows on stderr
  preflight.require();
  print_start(Console(true), preflight.config(), preflight);
  if (local_ranks == 0 && config.parallel.ranks > kMostThreads)
    print_stderr("bevatron: note: {} ranks need a launcher (docs/launching.md)\n",
                 config.parallel.ranks);
  const bool has_limit = memory_limit(config) > 0;
  if (!has_limit)
    print_stderr(
        "bevatron: note: no GPU here: the {} that a rank needs are not compared with its memory; "
        "--device.memory_gib N compares them\n",
        as_bytes(static_cast<double>(preflight.layout().largest().memory_bytes())));
  fmt::print("the run can start: configuration, {}data and output are in order\n",
             has_limit ? "memory, " : "");
}

}  // namespace

int train_dry_run(std::span<const std::string> args, int ranks, int local_ranks) {
  if (const auto loaded = train_config(args, ranks, true)) check_run(*loaded, local_ranks);
  return 0;
}

int train(std::span<const std::string> args) {
  std::optional<StopSignal> stop(std::in_place);
  const std::optional<RankEnvironment> environment = own_environment();
  std::optional<LoadedConfig> loaded;
  try {
    loaded = train_config(args, environment ? environment->size : 0,
                          !environment || environment->rank == 0);
  } catch (const Error& error) {
    if (!environment) throw;
    return report_once(*environment, error);
  }
  if (!loaded) return 0;
  continue_after_restart(loaded->config, loaded->origins, environment);
  if (loaded->has("--dry-run")) {
    stop.reset();
    // All ranks see the same.
    if (!environment || environment->rank == 0)
      check_run(*loaded, environment ? environment->local_size : 0);
    return 0;
  }
  if (environment) {
    if (environment->size > 1) stop->expect_others();
    return train_launched(*environment, *loaded, *stop);
  }
  if (loaded->config.parallel.backend != CommBackend::Auto)
    return train_launched(single_rank_environment(), *loaded, *stop);
  BEV_CHECK(loaded->config.parallel.ranks <= kMostThreads, Usage,
            "{} ranks, each a thread of this process; legal are 1 to {}, and more where a launcher "
            "starts a process for each (docs/launching.md)",
            loaded->config.parallel.ranks, kMostThreads);
  const Console console(true);
  const Preflight preflight(loaded->config, kAllRanks, true);
  preflight.require();
  print_start(console, preflight.config(), preflight);
  run_training(*loaded, preflight, nullptr, *stop, console);
  return 0;
}

}  // namespace bev::app
