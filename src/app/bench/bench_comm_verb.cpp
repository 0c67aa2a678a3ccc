#include <array>
#include <cstdio>

#include "app/bench/bench_verbs.h"
#include "app/cli/verb_config.h"
#include "app/doctor/doctor.h"
#include "app/launch/launched_rank.h"
#include "base/check.h"
#include "bench/comm_bench.h"
#include "comm/thread_communicator.h"
#include "config/parse/notation.h"
#include "config/parse/toml.h"
#include "config/resolve.h"
#include "net/address.h"
#include "ops/make_device.h"

namespace bev::app {

namespace {

constexpr std::array<VerbFlag, 4> kBenchCommFlags{{
    {"--json", "", "print JSON instead of a table"},
    {"--min-bytes", "SIZE", "the smallest message [default: 1Ki]"},
    {"--max-bytes", "SIZE",
     "no message is larger; each is four times the one before [default: 256Mi]"},
    {"--seconds", "N", "how long to measure each case [default: 0.25]"},
}};

constexpr std::string_view kSummary =
    "Times what ranks exchange, by itself: every exchange at many sizes, beside what the library "
    "below it reaches alone. Ranks are what a launcher started, or --threads N. Values are f32, or "
    "what --device.precision says. A message is the whole: what every rank has after all_gather, "
    "before reduce_scatter, before and after all_to_all. Its bytes over the time say how long to "
    "wait for it. How busy the links are is another question: of n ranks each keeps its own part, "
    "so (n-1)/n of the message must pass its link in all_gather, reduce_scatter and all_to_all, "
    "and twice that in all_reduce, which is all_gather after reduce_scatter; all of it in "
    "broadcast and send/recv, where each rank sends to the next and receives from the one before. "
    "The column \"bus\" is that share over the time. It can be held "
    "against the promised rate of a link, and does not change with the number of ranks where the "
    "links are the limit.";

// Where ranks are threads.
constexpr int64_t kMostCommThreads = 256;

size_t bytes_flag(const LoadedConfig& loaded, std::string_view flag, size_t otherwise) {
  if (!loaded.has(flag)) return otherwise;
  constexpr int64_t kLeast = 16, kMost = int64_t{1} << 40;
  const std::string text = loaded.own_text(flag);
  const auto size = parse_size(text);
  BEV_CHECK(size && *size >= kLeast && *size <= kMost, Usage,
            "{} {}: a number of bytes from {} to 1Ti is wanted: {}", flag, text, kLeast,
            kSizeNotation);
  return static_cast<size_t>(*size);
}

double seconds_flag(const LoadedConfig& loaded, double otherwise) {
  if (!loaded.has("--seconds")) return otherwise;
  const std::string text = loaded.own_text("--seconds");
  const auto seconds = parse_real(text);
  BEV_CHECK(seconds && *seconds >= 0 && *seconds <= 3600, Usage,
            "--seconds {}: a number from 0 to 3600 is wanted", text);
  return *seconds;
}

CommBenchOptions options_of(const LoadedConfig& loaded) {
  CommBenchOptions options;
  options.min_bytes = bytes_flag(loaded, "--min-bytes", options.min_bytes);
  options.max_bytes = bytes_flag(loaded, "--max-bytes", options.max_bytes);
  options.seconds = seconds_flag(loaded, options.seconds);
  BEV_CHECK(options.min_bytes <= options.max_bytes, Usage,
            "--min-bytes is {}, more than --max-bytes, {}; the other way round is legal",
            options.min_bytes, options.max_bytes);
  const DeviceConfig& device = loaded.config.device;
  if (device.precision != Precision::Auto || device.kind == DeviceKind::Reference)
    options.dtype = resolve_dtype(loaded.config);
  return options;
}

// `sharing`: ranks that share the memory of this machine, or of a GPU.
void require_memory(const CommBenchOptions& options, DeviceKind kind, int ranks, int sharing) {
  const size_t free = free_memory(kind);
  const size_t needed = comm_bench_memory(options, ranks) * static_cast<size_t>(sharing);
  BEV_CHECK(free == 0 || needed <= free, Device,
            "--max-bytes {}: {} ranks with two such messages each share this memory, of which {} "
            "are free; they take {}. A smaller --max-bytes fits",
            options.max_bytes, sharing, as_bytes(static_cast<double>(free)),
            as_bytes(static_cast<double>(needed)));
}

CommPlace place_of(const Config& config, std::string engine) {
  std::string device{name_of_choice(config.device.kind)};
  if (config.device.kind == DeviceKind::Cuda) {
    device += ", " + gpu_name();
  } else {
    device += format(", {} thread{} for each rank, {}", config.device.threads,
                     config.device.threads == 1 ? "" : "s", host_info().processor);
  }
  return {.engine = std::move(engine), .device = std::move(device), .host = host_name()};
}

void print(const LoadedConfig& loaded, const CommBench& bench, const CommPlace& place) {
  fmt::print("{}", loaded.has("--json") ? comm_bench_json(bench, place) + "\n"
                                        : comm_bench_table(bench, place));
}

void bench_processes(const RankEnvironment& environment, LoadedConfig& loaded) {
  Config& config = loaded.config;
  const CommBenchOptions options = options_of(loaded);
  const Console console(environment.rank == 0);
  LaunchedRank launched(environment, config, console);
  launched.run([&] {
    launched.require_same_on_ranks("the configuration", print_config(config, {}));
    launched.require_same_on_ranks("what to measure",
                                   format("bytes {} to {}\nseconds {}\n", options.min_bytes,
                                          options.max_bytes, options.seconds));
    config.device.threads = launched.threads(config.device.threads);
    launched.require_all_well([&] {
      require_memory(options, config.device.kind, launched.size(),
                     launched.sharing_memory(config.device.kind));
    });
    const std::unique_ptr<Device> device = make_device(config.device);
    const std::unique_ptr<Communicator> world = launched.make_world(*device);
    const CommBench bench = bev::bench_comm(*device, *world, options);
    if (launched.rank() == 0) print(loaded, bench, place_of(config, launched.describe()));
  });
}

void bench_threads(LoadedConfig& loaded) {
  Config& config = loaded.config;
  const CommBenchOptions options = options_of(loaded);
  const auto ranks = static_cast<int>(config.parallel.ranks);
  require_memory(options, config.device.kind, ranks, ranks);
  config.device.threads = threads_of_rank(config);
  const std::chrono::duration<double, std::ratio<60>> limit(config.parallel.timeout_minutes);
  run_ranks(ranks, std::chrono::duration_cast<std::chrono::milliseconds>(limit),
            [&](Communicator& world) {
              const std::unique_ptr<Device> device = make_device(config.device);
              const CommBench bench = bev::bench_comm(*device, world, options);
              if (world.rank() != 0) return;
              print(loaded, bench, place_of(config, format("{} threads of one process", ranks)));
            });
}

}  // namespace

int bench_comm(std::span<const std::string> args) {
  const std::optional<RankEnvironment> environment = own_environment();
  auto loaded = config_for({.name = "bench comm",
                            .summary = kSummary,
                            .own = kBenchCommFlags,
                            .complete =
                                [](Config& config) {
                                  if (config.train.sequence == 0) config.train.sequence = 1;
                                  fill_required_fields(config);
                                },
                            .launched = environment ? environment->size : 0},
                           args);
  if (!loaded) return 0;
  if (environment) {
    bench_processes(*environment, *loaded);
    return 0;
  }
  const int64_t ranks = loaded->config.parallel.ranks;
  BEV_CHECK(
      ranks > 1 && ranks <= kMostCommThreads, Usage,
      "bench comm with {} rank{}: it times what passes between ranks; legal are --threads 2 to "
      "{}, or a launcher that starts several processes: `bevatron launch --nproc_per_node 2 "
      "bench comm`, `mpirun -n 2 bevatron bench comm`",
      ranks, ranks == 1 ? "" : "s", kMostCommThreads);
  bench_threads(*loaded);
  return 0;
}

}  // namespace bev::app
