// Exchanges among ranks, against what the library below them reaches.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure.h"
#include "comm/communicator.h"

namespace bev {

enum class Collective : uint8_t {
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Broadcast,
  SendRecv
};
inline constexpr std::array kExchanges{Collective::AllReduce,     Collective::AllGather,
                                       Collective::ReduceScatter, Collective::AllToAll,
                                       Collective::Broadcast,     Collective::SendRecv};
std::string_view name_of(Collective exchange);

// The share of a message that has to pass the link of a rank, each way, however clever the exchange
// is. Rate of the message times this: what the links carry, whatever the exchange and the ranks.
double bus_factor(Collective exchange, int ranks);

struct CommTiming {
  Collective exchange{};
  size_t bytes = 0;  // of the whole message, of which a shard is one rank's part
  Timing time{};     // of one exchange, at the slowest rank
  std::optional<Timing> library{};

  double rate() const { return static_cast<double>(bytes) / time.median; }  // bytes per second
  double bus_rate(int ranks) const { return rate() * bus_factor(exchange, ranks); }
  // REQUIRES: the library was timed.
  double library_rate() const { return static_cast<double>(bytes) / library->median; }
  double of_library() const { return library->median / time.median; }
};

struct CommBench {
  int ranks = 1;
  DType dtype{};
  bool is_asynchronous = false;  // the device
  std::vector<CommTiming> exchanges{};
  Timing agreement{};     // of Communicator::largest
  size_t copy_bytes = 0;  // by each rank, all at the same time
  Timing copy{};
  std::string library{};  // what all_reduce is compared with; empty: nothing

  double copy_rate() const { return static_cast<double>(copy_bytes) / copy.median; }
};

struct CommBenchOptions {
  size_t min_bytes = size_t{1} << 10, max_bytes = size_t{256} << 20;  // in steps of 4
  double seconds = 0.25;                                              // for each case
  DType dtype = DType::f32;
};

// Bytes of device memory that each rank takes for it.
size_t comm_bench_memory(const CommBenchOptions& options, int ranks);

// All ranks together, more than one, with the same options. All get the same result. A time is that
// of a run of calls, made back to back from a common start until the device has done them, divided
// by their number; that of the slowest rank counts. Ours and the library's runs alternate.
CommBench bench_comm(Device& device, Communicator& world, const CommBenchOptions& options);

// Who took part, in words.
struct CommPlace {
  std::string engine, device, host;
};

std::string comm_bench_table(const CommBench& bench, const CommPlace& place);
std::string comm_bench_json(const CommBench& bench, const CommPlace& place);

}  // namespace bev
