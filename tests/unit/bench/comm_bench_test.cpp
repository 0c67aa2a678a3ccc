#include "bench/comm_bench.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/format.h"
#include "base/json.h"
#include "comm/thread_communicator.h"
#include "ops/make_device.h"

namespace bev {
namespace {

constexpr std::chrono::seconds kLimit{20};

// What each of the ranks found.
std::vector<CommBench> run(int ranks, const CommBenchOptions& options) {
  std::vector<CommBench> all(static_cast<size_t>(ranks));
  run_ranks(ranks, kLimit, [&](Communicator& world) {
    const std::unique_ptr<Device> device = make_device(DeviceKind::Cpu, 1);
    all[static_cast<size_t>(world.rank())] = bench_comm(*device, world, options);
  });
  return all;
}

// By hand: of 1000 bytes on 4 ranks in 10 us, 750 must pass each link, twice in a sum.
CommBench by_hand() {
  const auto lasting = [](double seconds) { return Timing{.median = seconds, .runs = 3}; };
  CommBench bench{.ranks = 4, .dtype = DType::f32, .copy_bytes = 4096, .library = "a copy"};
  bench.copy = lasting(1e-6);
  bench.agreement = lasting(25e-6);
  for (const Collective exchange : kExchanges)
    bench.exchanges.push_back({.exchange = exchange, .bytes = 1000, .time = lasting(10e-6)});
  bench.exchanges.front().library = lasting(4e-6);
  return bench;
}

const CommPlace kPlace{.engine = "4 threads", .device = "cpu", .host = "here"};

TEST(CommBench, LinksCarryTheShareThatARankDoesNotKeep) {
  EXPECT_DOUBLE_EQ(bus_factor(Collective::AllReduce, 2), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::AllReduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::AllGather, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::ReduceScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::AllToAll, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::Broadcast, 8), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::SendRecv, 8), 1);
}

TEST(CommBench, RatesFollowFromBytesAndTimes) {
  const CommBench bench = by_hand();
  const CommTiming& sum = bench.exchanges[0];
  EXPECT_DOUBLE_EQ(sum.rate(), 100e6);
  EXPECT_DOUBLE_EQ(sum.bus_rate(4), 150e6);
  EXPECT_DOUBLE_EQ(sum.library_rate(), 250e6);
  EXPECT_DOUBLE_EQ(sum.of_library(), 0.4);
  EXPECT_DOUBLE_EQ(bench.exchanges[1].bus_rate(4), 75e6);
  EXPECT_DOUBLE_EQ(bench.copy_rate(), 4.096e9);
}

// Fails when an exchange or a size is left out, when a rank gets another result than the others, or
// when a message does not divide over the ranks.
TEST(CommBench, EveryExchangeAtEverySizeIsTheSameAtAllRanks) {
  const auto all = run(3, {.min_bytes = 1024, .max_bytes = 20000, .seconds = 0.002});
  const CommBench& first = all.front();
  ASSERT_EQ(first.exchanges.size(), 3 * kExchanges.size());
  for (size_t i = 0; i < first.exchanges.size(); ++i) {
    const CommTiming& t = first.exchanges[i];
    EXPECT_EQ(t.exchange, kExchanges[i / 3]);
    EXPECT_EQ(t.bytes, (std::array<size_t, 3>{1020, 4092, 16380})[i % 3]);
    EXPECT_GT(t.time.median, 0);
    EXPECT_GE(t.time.runs, 3);
    EXPECT_EQ(t.library.has_value(), t.exchange == Collective::AllReduce);
    for (const CommBench& other : all) {
      EXPECT_EQ(other.exchanges[i].time.median, t.time.median);
      EXPECT_EQ(other.exchanges[i].time.calls, t.time.calls);
    }
  }
  EXPECT_EQ(first.copy_bytes, 19992u);
  EXPECT_NE(first.library.find("copy"), std::string::npos) << "threads have no library";
  EXPECT_GT(first.agreement.median, 0);
}

TEST(CommBench, OnlyF32IsComparedWithALibrary) {
  const auto all = run(2, {.min_bytes = 64, .max_bytes = 64, .seconds = 0, .dtype = DType::bf16});
  EXPECT_EQ(all[0].library, "");
  EXPECT_EQ(comm_bench_table(all[0], kPlace).find("library"), std::string::npos);
  EXPECT_EQ(Json::parse(comm_bench_json(all[0], kPlace)).at("dtype"), "bf16");
}

// Two messages, each in whole steps of the arena.
TEST(CommBench, SaysHowMuchMemoryItTakes) {
  EXPECT_EQ(comm_bench_memory({.max_bytes = 1024}, 2), 2048u);
  EXPECT_EQ(comm_bench_memory({.max_bytes = 1025}, 2), 2048u);
  EXPECT_EQ(comm_bench_memory({.max_bytes = 1032}, 2), 2560u);
}

TEST(CommBench, TheTableHasALineForEachExchange) {
  const std::string text = comm_bench_table(by_hand(), kPlace);
  std::istringstream lines(text);
  std::vector<std::string> sums;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("all_reduce")) sums.push_back(line);
  ASSERT_EQ(sums.size(), 1u);
  std::istringstream fields(sums[0]);
  std::string name, bytes;
  double time = 0, rate = 0, bus = 0, library = 0, ratio = 0;
  fields >> name >> bytes >> time >> rate >> bus >> library >> ratio;
  EXPECT_EQ(bytes, "1,000");
  EXPECT_EQ(time, 10);
  EXPECT_EQ(rate, 0.1);
  EXPECT_EQ(bus, 0.15);
  EXPECT_EQ(library, 0.25);
  EXPECT_EQ(ratio, 0.4);
  for (const Collective exchange : kExchanges)
    EXPECT_NE(text.find(format("\n{} ", name_of(exchange))), std::string::npos);
  for (const char* words : {"4 threads", "here", "25.0 us", "4.10 GB/s", "library: a copy"})
    EXPECT_NE(text.find(words), std::string::npos) << words;
}

TEST(CommBench, JsonHasWhatTheTableHas) {
  const Json json = Json::parse(comm_bench_json(by_hand(), kPlace));
  EXPECT_EQ(json.at("ranks"), 4);
  EXPECT_EQ(json.at("engine"), "4 threads");
  EXPECT_EQ(json.at("agreement_seconds"), 25e-6);
  ASSERT_EQ(json.at("exchanges").size(), kExchanges.size());
  const Json& sum = json.at("exchanges").at(0);
  EXPECT_EQ(sum.at("exchange"), "all_reduce");
  EXPECT_EQ(sum.at("bytes"), 1000);
  EXPECT_DOUBLE_EQ(sum.at("bus_bytes_per_second"), 150e6);
  EXPECT_DOUBLE_EQ(sum.at("fraction_of_library"), 0.4);
  EXPECT_FALSE(json.at("exchanges").at(1).contains("fraction_of_library"));
}

}  // namespace
}  // namespace bev
