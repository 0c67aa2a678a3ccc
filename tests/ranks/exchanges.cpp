#include "ranks/exchanges.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "base/format.h"
#include "comm/thread_communicator.h"
#include "ops/make_device.h"
#include "support/uneven_rows.h"

namespace bev::test {

namespace {

// Around the staging memory of a chunk (4 MiB), where it is cut into chunks.
constexpr int64_t kChunk = (int64_t{4} << 20) / 4;

using Bytes = std::vector<std::byte>;

template <class... Args>
void require(bool condition, fmt::format_string<Args...> what, Args&&... args) {
  if (!condition) throw std::runtime_error(format(what, std::forward<Args>(args)...));
}

// What a rank needs besides its communicator.
struct Place {
  std::unique_ptr<Device> device = make_device(DeviceKind::Cpu, 1);
  Arena none{*device, 0, "none"};
  Exec ex{*device, device->compute_stream(), none, none, none};
};

Tensor over(Bytes& bytes, DType dtype) {
  return tensor_over(bytes.data(), dtype, {static_cast<int64_t>(bytes.size() / size_of(dtype))});
}

// Numbers of many magnitudes, so that another order of the ranks gives other bits.
double value_of(int rank, int64_t i) {
  uint64_t x = static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15U + static_cast<uint64_t>(rank + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  x ^= x >> 31;
  const double unit = static_cast<double>(x >> 11) / 9007199254740992.0 - 0.5;
  return unit * static_cast<double>(uint64_t{1} << (x & 15)) / 256;
}

template <class T>
Bytes numbers(int rank, int64_t count) {
  Bytes bytes(static_cast<size_t>(count) * sizeof(T));
  for (int64_t i = 0; i < count; ++i) {
    const T value = [&] {
      if constexpr (std::is_same_v<T, double>)
        return value_of(rank, i);
      else
        return static_cast<T>(static_cast<float>(value_of(rank, i)));
    }();
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

Bytes numbers_of(DType dtype, int rank, int64_t count) {
  switch (dtype) {
    case DType::f64: return numbers<double>(rank, count);
    case DType::f32: return numbers<float>(rank, count);
    case DType::bf16: return numbers<bf16>(rank, count);
    default: return numbers<f16>(rank, count);
  }
}

// What the same call gives ranks that are threads, one after the other.
template <class F>
Bytes by_threads(int size, size_t bytes_each, const F& call) {
  Bytes all(bytes_each * static_cast<size_t>(size));
  run_ranks(size, std::chrono::seconds(60), [&](Communicator& world) {
    Place place;
    const Bytes result = call(place.ex, world);
    std::copy(result.begin(), result.end(),
              all.begin() + static_cast<ptrdiff_t>(bytes_each * static_cast<size_t>(world.rank())));
  });
  return all;
}

// `call` gives every rank `bytes_each`, the same as among threads.
template <class F>
void require_same_as_threads(Exec& ex, Communicator& world, size_t bytes_each,
                             const std::string& what, const F& call) {
  Bytes mine = call(ex, world);
  Bytes all(bytes_each * static_cast<size_t>(world.size()));
  world.all_gather(ex, over(mine, DType::u8), over(all, DType::u8));
  Bytes expected;
  if (world.rank() == 0) {
    expected = by_threads(world.size(), bytes_each, call);
  } else {
    expected.resize(all.size());
  }
  world.broadcast(ex, over(expected, DType::u8), 0);
  const auto differs = std::mismatch(all.begin(), all.end(), expected.begin()).first;
  require(differs == all.end(), "{}: byte {} of {} differs from what threads get", what,
          differs - all.begin(), all.size());
}

void check_sums(Exec& ex, Communicator& world) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    for (const int64_t count : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{1021},
                                int64_t{10007}, int64_t{1000003}}) {
      const size_t bytes = static_cast<size_t>(count) * size_of(dtype);
      for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min}) {
        if (op != ReduceOp::Sum && count > 20000) continue;
        require_same_as_threads(
            ex, world, bytes,
            format("all_reduce {} of {} {}", static_cast<int>(op), count, name_of(dtype)),
            [&](Exec& on, Communicator& ranks) {
              Bytes values = numbers_of(dtype, ranks.rank(), count);
              ranks.all_reduce(on, over(values, dtype), op);
              return values;
            });
      }
      if (count > 20000 && dtype != DType::f32) continue;
      require_same_as_threads(
          ex, world, bytes, format("reduce_scatter of {} {} each", count, name_of(dtype)),
          [&](Exec& on, Communicator& ranks) {
            Bytes values = numbers_of(dtype, ranks.rank(), count * ranks.size());
            Bytes sums(bytes);
            ranks.reduce_scatter(on, over(values, dtype), over(sums, dtype));
            return sums;
          });
    }
  }
}

// Sizes at which the last chunk is empty, full or has fewer elements than there are ranks.
void check_chunks(Exec& ex, Communicator& world) {
  const auto ranks = static_cast<float>(world.size());
  for (const int64_t count : {kChunk - 1, kChunk, kChunk + 1, 2 * kChunk + 3}) {
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(i % 1000) + static_cast<float>(world.rank());
    world.all_reduce(ex,
                     tensor_over(reinterpret_cast<std::byte*>(values.data()), DType::f32, {count}));
    for (size_t i = 0; i < values.size(); ++i) {
      require(values[i] == ranks * static_cast<float>(i % 1000) + ranks * (ranks - 1) / 2,
              "all_reduce of {} f32: element {} is {}", count, i, values[i]);
    }
  }
}

std::byte pattern(int rank, size_t i, int round) {
  return static_cast<std::byte>(
      (static_cast<size_t>(rank) * 89 + i * 7 + i / 251 + static_cast<size_t>(round) * 31) & 0xFF);
}

Bytes pattern_of(int rank, size_t count, int round) {
  Bytes bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = pattern(rank, i, round);
  return bytes;
}

void require_pattern(std::span<const std::byte> bytes, int rank, int round, const char* what) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    require(bytes[i] == pattern(rank, i, round), "{}: byte {} of {} from rank {} is wrong", what, i,
            bytes.size(), rank);
  }
}

void check_copies(Exec& ex, Communicator& world) {
  for (const size_t count : {size_t{1}, size_t{3}, size_t{4099}, size_t{3000017}}) {
    for (int root = 0; root < world.size(); ++root) {
      Bytes told = pattern_of(world.rank(), count, 1);
      world.broadcast(ex, over(told, DType::u8), root);
      require_pattern(told, root, 1, "broadcast");
    }
    for (const bool in_place : {false, true}) {
      Bytes own = pattern_of(world.rank(), count, 2);
      Bytes all(count * static_cast<size_t>(world.size()), std::byte{0xEE});
      const size_t at = count * static_cast<size_t>(world.rank());
      if (in_place) std::copy(own.begin(), own.end(), all.begin() + static_cast<ptrdiff_t>(at));
      const ConstTensor shard =
          in_place ? tensor_over(all.data() + at, DType::u8, {static_cast<int64_t>(count)})
                   : over(own, DType::u8);
      world.all_gather(ex, shard, over(all, DType::u8));
      for (int r = 0; r < world.size(); ++r) {
        require_pattern({all.data() + count * static_cast<size_t>(r), count}, r, 2,
                        in_place ? "all_gather in place" : "all_gather");
      }
    }
  }
}

size_t sum_of(std::span<const int64_t> rows) {
  size_t sum = 0;
  for (const int64_t count : rows) sum += static_cast<size_t>(count);
  return sum;
}

// Each block has the pattern of its two ends.
void check_all_to_all(Exec& ex, Communicator& world, DType dtype, std::span<const int64_t> to,
                      std::span<const int64_t> from, bool is_even) {
  constexpr size_t kWidth = 3;
  const size_t row_bytes = kWidth * size_of(dtype);
  Bytes in, out(sum_of(from) * row_bytes, std::byte{0xEE});
  for (size_t r = 0; r < to.size(); ++r) {
    const Bytes block =
        pattern_of(world.rank(), static_cast<size_t>(to[r]) * row_bytes, static_cast<int>(r));
    in.insert(in.end(), block.begin(), block.end());
  }
  const auto as_rows = [&](Bytes& bytes) {
    return tensor_over(bytes.data(), dtype,
                       {static_cast<int64_t>(bytes.size() / row_bytes), kWidth});
  };
  if (is_even) {
    world.all_to_all(ex, as_rows(in), as_rows(out));
  } else {
    world.all_to_all(ex, as_rows(in), to, as_rows(out), from);
  }
  std::span<const std::byte> rest(out);
  for (size_t r = 0; r < from.size(); ++r) {
    const size_t bytes = static_cast<size_t>(from[r]) * row_bytes;
    require_pattern(rest.first(bytes), static_cast<int>(r), world.rank(), "all_to_all");
    rest = rest.subspan(bytes);
  }
}

void check_gather(Exec& ex, Communicator& world, std::span<const int64_t> bounds) {
  const auto me = static_cast<size_t>(world.rank());
  const auto place = [&](size_t r) { return static_cast<size_t>(bounds[r]); };
  for (const bool in_place : {false, true}) {
    Bytes own = pattern_of(world.rank(), place(me + 1) - place(me), 3);
    Bytes all(place(bounds.size() - 1), std::byte{0xEE});
    if (in_place) std::copy(own.begin(), own.end(), all.begin() + bounds[me]);
    const Tensor whole = over(all, DType::u8);
    const ConstTensor shard =
        in_place ? slice(whole, 0, bounds[me], bounds[me + 1] - bounds[me]) : over(own, DType::u8);
    world.all_gather(ex, shard, whole, bounds);
    for (size_t r = 0; r + 1 < bounds.size(); ++r) {
      require_pattern(std::span(all).subspan(place(r), place(r + 1) - place(r)),
                      static_cast<int>(r), 3, "all_gather of unequal shards");
    }
  }
}

void check_scatter(Exec& ex, Communicator& world, DType dtype, std::span<const int64_t> bounds) {
  int64_t most = 0;
  for (size_t r = 1; r < bounds.size(); ++r) most = std::max(most, bounds[r] - bounds[r - 1]);
  const size_t bytes = static_cast<size_t>(most) * size_of(dtype);
  require_same_as_threads(
      ex, world, bytes, format("reduce_scatter to shards of up to {} {}", most, name_of(dtype)),
      [&](Exec& on, Communicator& ranks) {
        const auto r = static_cast<size_t>(ranks.rank());
        Bytes values = numbers_of(dtype, ranks.rank(), bounds.back());
        Bytes sums(bytes);
        ranks.reduce_scatter(on, over(values, dtype), bounds,
                             slice(over(sums, dtype), 0, 0, bounds[r + 1] - bounds[r]));
        return sums;
      });
}

// Blocks and shards of unequal size, some of them empty.
void check_uneven(Exec& ex, Communicator& world) {
  const int size = world.size(), here = world.rank();
  for (int which = 0; which < kUnevenCases; ++which) {
    const std::vector<int64_t> to = rows_to_all(which, here, size);
    const std::vector<int64_t> from = rows_from_all(which, here, size);
    const std::vector<int64_t> bounds = uneven_bounds(which, size);
    for (const DType dtype : {DType::u8, DType::bf16, DType::i32, DType::f64})
      check_all_to_all(ex, world, dtype, to, from, false);
    check_gather(ex, world, bounds);
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16})
      check_scatter(ex, world, dtype, bounds);
  }
  for (const int64_t rows : {0, 1, 200003}) {
    const std::vector<int64_t> each(static_cast<size_t>(size), rows);
    check_all_to_all(ex, world, DType::f16, each, each, true);
  }
  // One shard has several chunks, the others have less than one.
  std::vector<int64_t> bounds{0};
  for (int r = 0; r < size; ++r)
    bounds.push_back(bounds.back() + (r == 1 ? 3 * kChunk / 2 : 3 * r));
  check_scatter(ex, world, DType::f32, bounds);
}

// Everybody sends several tensors to everybody on both channels before anybody receives: nobody
// may have to wait for a receiver, and nothing may overtake in its channel. Sums in between must
// not take what was sent.
void check_messages(Exec& ex, Communicator& world) {
  constexpr int kEach = 3;
  struct Message {
    Bytes bytes;
    SendTicket sent;
  };
  std::vector<Message> messages;
  const auto size_of_message = [](int k) {
    return k == 0 ? size_t{5} : k == 1 ? size_t{1500007} : size_t{70001};
  };
  const auto round_of = [](Channel channel, int k) { return 2 * k + static_cast<int>(channel); };
  const auto channels = {Channel::Forward, Channel::Backward};
  messages.reserve(static_cast<size_t>(world.size()) * 2 * kEach);
  for (const Channel channel : channels) {
    for (int k = 0; k < kEach; ++k) {
      for (int to = 0; to < world.size(); ++to) {
        if (to == world.rank()) continue;
        Message& message = messages.emplace_back();
        message.bytes = pattern_of(world.rank(), size_of_message(k), round_of(channel, k));
        message.sent = world.send(ex, over(message.bytes, DType::u8), to, channel);
      }
    }
  }
  std::vector<double> one{1};
  world.all_reduce(ex, tensor_over(reinterpret_cast<std::byte*>(one.data()), DType::f64, {1}));
  require(one[0] == world.size(), "a sum while messages are on their way");
  for (const Channel channel : {Channel::Backward, Channel::Forward}) {
    for (int from = 0; from < world.size(); ++from) {
      for (int k = 0; k < kEach && from != world.rank(); ++k) {
        Bytes got(size_of_message(k));
        world.recv(ex, over(got, DType::u8), from, channel);
        require_pattern(got, from, round_of(channel, k), "recv");
      }
    }
  }
  for (const Message& message : messages) world.wait_send(ex, message.sent);
}

void require_sum(Exec& ex, Communicator& group, double mine, double expected,
                 const std::string& what) {
  std::vector<double> x{mine};
  group.all_reduce(ex, tensor_over(reinterpret_cast<std::byte*>(x.data()), DType::f64, {1}));
  require(x[0] == expected, "{}: the sum is {}, not {}", what, x[0], expected);
}

// Groups that overlap: every two ranks, in both orders, and the same two again.
void check_groups(Exec& ex, Communicator& world) {
  struct Pair {
    int a, b;
    std::unique_ptr<Communicator> group;
  };
  std::vector<Pair> pairs;
  for (int turn = 0; turn < 2; ++turn) {
    for (int a = 0; a < world.size(); ++a) {
      for (int b = 0; b < world.size(); ++b) {
        if (a == b || (a != world.rank() && b != world.rank())) continue;
        pairs.push_back({a, b, world.split(std::vector<int>{a, b})});
        require(pairs.back().group->rank() == (a == world.rank() ? 0 : 1), "ranks of a split");
      }
    }
  }
  for (int turn = 0; turn < 20; ++turn) {
    for (const Pair& pair : pairs) {
      require_sum(ex, *pair.group, world.rank() + turn, pair.a + pair.b + 2 * turn, "a pair");
      // What the first member has, whatever its rank in the world.
      Bytes told = pattern_of(world.rank(), 9, turn);
      pair.group->broadcast(ex, over(told, DType::u8), 0);
      require_pattern(told, pair.a, turn, "broadcast in a pair");
    }
  }
  require(world.split(std::vector<int>{world.rank()})->size() == 1, "a group of one");
}

// The rows and columns of a grid, used in turn.
void check_grid(Exec& ex, Communicator& world) {
  if (world.size() != 4) return;
  const int r = world.rank();
  const std::vector<int> row = {r / 2 * 2, r / 2 * 2 + 1}, column = {r % 2, r % 2 + 2};
  const auto rows = world.split(row), columns = world.split(column);
  for (int turn = 0; turn < 50; ++turn) {
    require_sum(ex, *rows, r, row[0] + row[1], "a row");
    require_sum(ex, *columns, r, column[0] + column[1], "a column");
    require(rows->all_reduce_max_host(r + turn) == row[1] + turn, "the largest of a row");
  }
  rows->barrier(std::chrono::seconds(60));
}

}  // namespace

void check_exchanges(Communicator& world) {
  Place place;
  check_copies(place.ex, world);
  check_uneven(place.ex, world);
  check_messages(place.ex, world);
  check_groups(place.ex, world);
  check_grid(place.ex, world);
  check_chunks(place.ex, world);
  check_sums(place.ex, world);
  require(world.all_reduce_max_host(-world.rank()) == 0, "the largest");
  world.barrier(std::chrono::seconds(60));
}

}  // namespace bev::test
