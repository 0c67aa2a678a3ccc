#include "base/format.h"
#include "base/json.h"
#include "bench/comm_bench.h"

namespace bev {

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
  text += format("{:<15} {:>13} {:>12} {:>9} {:>9}", name_of(bench.dtype), "bytes", "time us",
                 "GB/s", "bus GB/s");
  text += compared ? format(" {:>13} {:>13}\n", "library GB/s", "ours/library") : "\n";
  for (const CommTiming& t : bench.exchanges) {
    text += format("{:<15} {:>13} {:>12.1f} {:>9.3f} {:>9.3f}", name_of(t.exchange),
                   with_commas(static_cast<int64_t>(t.bytes)), 1e6 * t.time.median, 1e-9 * t.rate(),
                   1e-9 * t.bus_rate(bench.ranks));
    if (t.library) text += format(" {:>13.3f} {:>13.3f}", 1e-9 * t.library_rate(), t.of_library());
    text += "\n";
  }
  text += format("\ntime: {}\n", timing_words(bench));
  std::vector<std::string> shares;
  for (const Exchange exchange : kExchanges)
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
