#include "bench/comm_bench.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/check.h"
#include "base/clock.h"
#include "base/format.h"
#include "base/integer.h"
#include "base/json.h"
#include "base/text_table.h"
#include "bench/measure.h"
#include "comm/host_communicator.h"
#include "comm/nccl_world.h"
#include "comm/thread_communicator.h"
#include "ops/elementwise.h"

namespace bev {

namespace {

using Call = std::function<void()>;

// Times calls that all ranks make together. The times are those of the slowest rank and the same at
// all of them, so that all decide alike how often a call is repeated.
class Stopwatch {
 public:
  Stopwatch(Communicator& world, Stream stream) : world_(world), stream_(stream) {}

  // Of one of so many calls.
  double seconds(const Call& call, int64_t calls) const {
    world_.all_reduce_max_host(0);  // nobody begins before all have come
    const double begin = seconds_now();
    for (int64_t i = 0; i < calls; ++i) call();
    stream_.synchronize();
    const auto here = static_cast<int64_t>(std::llround(1e9 * (seconds_now() - begin)));
    const int64_t slowest = world_.all_reduce_max_host(std::max<int64_t>(here, 1));
    return 1e-9 * static_cast<double>(slowest) / static_cast<double>(calls);
  }

  // How many calls fill the time, found by trials of a small part of it.
  int64_t calls_in(double limit, const Call& call) const {
    constexpr int64_t kMostCalls = 1'000'000;
    seconds(call, 1);  // connects and touches what is used for the first time
    for (int64_t calls = 1;; calls *= 4) {
      const double one = seconds(call, calls);
      if (one * static_cast<double>(calls) < limit / 10 && calls < kMostCalls) continue;
      return static_cast<int64_t>(std::clamp(limit / one, 1.0, static_cast<double>(kMostCalls)));
    }
  }

  // A run of one and a run of the next in turn, so that all see the same machine.
  std::vector<Timing> in_turn(std::span<const Call> all, double limit) const {
    constexpr int64_t kFewestRuns = 3, kMostRuns = 7;
    int64_t runs = kMostRuns;
    std::vector<int64_t> calls;
    for (const Call& call : all) {
      calls.push_back(calls_in(limit, call));
      runs = std::min(runs, std::max(kFewestRuns, calls.back()));
    }
    std::vector<std::vector<double>> times(all.size());
    for (int64_t& each : calls) each = std::max<int64_t>(1, each / runs);
    for (int64_t run = 0; run < runs; ++run) {
      for (size_t i = 0; i < all.size(); ++i) times[i].push_back(seconds(all[i], calls[i]));
    }
    std::vector<Timing> timings;
    for (size_t i = 0; i < all.size(); ++i) {
      timings.push_back(summarize(std::move(times[i])));
      timings.back().calls = calls[i];
    }
    return timings;
  }

  Timing time(const Call& call, double limit) const {
    return in_turn(std::span(&call, 1), limit).front();
  }

 private:
  Communicator& world_;
  Stream stream_;
};

// A message of the size that was asked for or a little less: the same shard for each rank.
int64_t elements_for(size_t bytes, DType dtype, int ranks) {
  const auto elements = static_cast<int64_t>(bytes / size_of(dtype));
  return std::max<int64_t>(ranks, elements / ranks * ranks);
}

// What one exchange takes and gives.
struct Message {
  Tensor whole, other;  // of the same size

  Tensor shard(int ranks) const { return slice(other, 0, 0, other.shape.elements() / ranks); }
};

Call call_of(Collective exchange, Communicator& world, Exec& ex, const Message& m) {
  const int ranks = world.size();
  const Tensor shard = m.shard(ranks);
  switch (exchange) {
    case Collective::AllReduce: return [&world, &ex, m] { world.all_reduce(ex, m.whole); };
    case Collective::AllGather:
      return [&world, &ex, m, shard] { world.all_gather(ex, shard, m.whole); };
    case Collective::ReduceScatter:
      return [&world, &ex, m, shard] { world.reduce_scatter(ex, m.whole, shard); };
    case Collective::AllToAll: return [&world, &ex, m] { world.all_to_all(ex, m.whole, m.other); };
    case Collective::Broadcast: return [&world, &ex, m] { world.broadcast(ex, m.whole, 0); };
    case Collective::SendRecv: break;
  }
  const int next = (world.rank() + 1) % ranks, previous = (world.rank() + ranks - 1) % ranks;
  return [&world, &ex, m, next, previous] {
    const SendTicket sent = world.send(ex, m.whole, next, Channel::Forward);
    world.recv(ex, m.other, previous, Channel::Forward);
    world.wait_send(ex, sent);
  };
}

Call copy_of(Exec& ex, const Message& m) {
  return [&ex, m] { ex.device.copy_on(ex.stream, m.whole.data, m.other.data, bytes_of(m.whole)); };
}

// What all_reduce is compared with.
struct Library {
  std::string words;  // empty: nothing
  std::function<Call(const Message&)> sum;
};

Library library_of(Communicator& world, Exec& ex, DType dtype) {
  if (dtype != DType::f32) return {};
  if (auto* host = dynamic_cast<HostCommunicator*>(&world)) {
    return {"the sum of the library itself, in the order and with the rounding it likes",
            [host, &ex](const Message& m) {
              return [host, &ex, m] { host->library_sum(ex, m.whole); };
            }};
  }
  if (is_nccl(world)) {
    return {
        "ncclAllReduce itself, on the same communicator and stream, with nothing in front of it",
        [&world, &ex](const Message& m) {
          return [&world, &ex, m] { nccl_sum(world, ex, m.whole); };
        }};
  }
  if (dynamic_cast<ThreadCommunicator*>(&world) != nullptr) {
    return {"threads have none; a plain copy of as many bytes by every rank at the same time",
            [&ex](const Message& m) { return copy_of(ex, m); }};
  }
  return {};
}

}  // namespace

std::string_view name_of(Collective exchange) {
  constexpr std::array<std::string_view, kExchanges.size()> names{
      "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "send/recv"};
  return names[static_cast<size_t>(exchange)];
}

double bus_factor(Collective exchange, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (exchange) {
    case Collective::AllReduce: return 2 * others;  // each part to where it is summed, and back
    case Collective::AllGather:
    case Collective::ReduceScatter:
    case Collective::AllToAll: return others;  // but the part that is its own
    case Collective::Broadcast:
    case Collective::SendRecv: break;
  }
  return 1;
}

size_t comm_bench_memory(const CommBenchOptions& options, int ranks) {
  const int64_t elements = elements_for(options.max_bytes, options.dtype, ranks);
  const size_t bytes = static_cast<size_t>(elements) * size_of(options.dtype);
  return 2 * static_cast<size_t>(round_up(static_cast<int64_t>(bytes), kArenaAlignment));
}

CommBench bench_comm(Device& device, Communicator& world, const CommBenchOptions& options) {
  const int ranks = world.size();
  BEV_CHECK(ranks > 1, Internal, "one rank has nobody to exchange anything with");
  BEV_CHECK(options.min_bytes > 0 && options.min_bytes <= options.max_bytes, Internal,
            "messages of {} to {} bytes", options.min_bytes, options.max_bytes);
  OpRig rig(device, {.operands = comm_bench_memory(options, ranks), .scratch = 0});
  Exec& ex = rig.exec();
  const int64_t most = elements_for(options.max_bytes, options.dtype, ranks);
  const Message largest{rig.make({most}, options.dtype), rig.make({most}, options.dtype)};
  // However often they are summed, zeros neither overflow nor become denormal.
  ops::fill(ex, {.out = largest.whole, .value = 0});
  ops::fill(ex, {.out = largest.other, .value = 0});
  world.connect_neighbours();

  const Stopwatch stopwatch(world, ex.stream);
  const Library library = library_of(world, ex, options.dtype);
  CommBench bench{.ranks = ranks,
                  .dtype = options.dtype,
                  .is_asynchronous = device.is_asynchronous(),
                  .copy_bytes = bytes_of(largest.whole),
                  .library = library.words};
  bench.copy = stopwatch.time(copy_of(ex, largest), options.seconds);
  bench.agreement = stopwatch.time([&] { world.all_reduce_max_host(1); }, options.seconds);
  for (const Collective exchange : kExchanges) {
    for (size_t bytes = options.min_bytes; bytes <= options.max_bytes; bytes *= 4) {
      const int64_t elements = elements_for(bytes, options.dtype, ranks);
      const Message message{slice(largest.whole, 0, 0, elements),
                            slice(largest.other, 0, 0, elements)};
      std::vector<Call> calls{call_of(exchange, world, ex, message)};
      if (exchange == Collective::AllReduce && library.sum) calls.push_back(library.sum(message));
      const std::vector<Timing> times = stopwatch.in_turn(calls, options.seconds);
      bench.exchanges.push_back(
          {.exchange = exchange,
           .bytes = bytes_of(message.whole),
           .time = times.front(),
           .library = times.size() > 1 ? std::optional(times[1]) : std::nullopt});
    }
  }
  return bench;
}

namespace {

std::string timing_words(const CommBench& bench) {
  return format(
      "the median run of back-to-back calls from a common start until {}, by the clock of the "
      "host, divided by the calls; the slowest rank counts",
      bench.is_asynchronous ? "the stream has done them" : "the last returns");
}

}  // namespace

std::string comm_bench_table(const CommBench& bench, const CommPlace& place) {
  std::string text = format("ranks      {}\ndevice     {}\nhost       {}\n", place.engine,
                            place.device, place.host);
  text += format("copy       {:.2f} GB/s: every rank copies {} in its own memory, all at once\n",
                 1e-9 * bench.copy_rate(), as_bytes(static_cast<double>(bench.copy_bytes)));
  text += format("agreement  {:.1f} us: the largest of a number from each rank, on the host\n\n",
                 1e6 * bench.agreement.median);
  const bool compared = !bench.library.empty();
  TextTable row("{:<15} {:>13} {:>12.1f} {:>9.3f} {:>9.3f} {:>13.3f} {:>13.3f}");
  if (compared)
    row(name_of(bench.dtype), "bytes", "time us", "GB/s", "bus GB/s", "library GB/s",
        "ours/library");
  else
    row(name_of(bench.dtype), "bytes", "time us", "GB/s", "bus GB/s");
  for (const CommTiming& t : bench.exchanges) {
    const std::string bytes = with_commas(static_cast<int64_t>(t.bytes));
    const double time = 1e6 * t.time.median, rate = 1e-9 * t.rate();
    const double bus_rate = 1e-9 * t.bus_rate(bench.ranks);
    if (t.library)
      row(name_of(t.exchange), bytes, time, rate, bus_rate, 1e-9 * t.library_rate(),
          t.of_library());
    else
      row(name_of(t.exchange), bytes, time, rate, bus_rate);
  }
  text += row.text + format("\ntime: {}\n", timing_words(bench));
  std::vector<std::string> shares;
  for (const Collective exchange : kExchanges)
    shares.push_back(format("{} {:.3g}", name_of(exchange), bus_factor(exchange, bench.ranks)));
  text += format(
      "GB/s: bytes of the message over the time; bus: times the share that passes each link: {}\n",
      fmt::join(shares, ", "));
  if (compared) text += format("library: {}\n", bench.library);
  return text;
}

std::string comm_bench_json(const CommBench& bench, const CommPlace& place) {
  Json list = Json::array();
  for (const CommTiming& t : bench.exchanges) {
    Json entry{{"exchange", name_of(t.exchange)},
               {"bytes", t.bytes},
               {"median_seconds", t.time.median},
               {"low_seconds", t.time.low},
               {"high_seconds", t.time.high},
               {"best_seconds", t.time.best},
               {"runs", t.time.runs},
               {"calls_per_run", t.time.calls},
               {"bytes_per_second", t.rate()},
               {"bus_bytes_per_second", t.bus_rate(bench.ranks)}};
    if (t.library) {
      entry["library_median_seconds"] = t.library->median;
      entry["library_best_seconds"] = t.library->best;
      entry["library_bytes_per_second"] = t.library_rate();
      entry["fraction_of_library"] = t.of_library();
    }
    list.push_back(std::move(entry));
  }
  return Json{{"ranks", bench.ranks},
              {"dtype", name_of(bench.dtype)},
              {"engine", place.engine},
              {"device", place.device},
              {"host", place.host},
              {"copy_bytes", bench.copy_bytes},
              {"copy_bytes_per_second", bench.copy_rate()},
              {"agreement_seconds", bench.agreement.median},
              {"time", timing_words(bench)},
              {"library", bench.library},
              {"exchanges", std::move(list)}}
      .dump(2);
}

}  // namespace bev
