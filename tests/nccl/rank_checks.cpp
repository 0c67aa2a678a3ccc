#include "nccl/rank_checks.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "device/exec.h"
#include "support/uneven_rows.h"

namespace bev::test {

namespace {

constexpr std::array kTypes{DType::f64, DType::f32, DType::bf16, DType::f16,
                            DType::i64, DType::i32, DType::u8};
// None is a multiple of what a kernel moves at once, except by chance.
constexpr std::array<int64_t, 5> kCounts{1, 3, 127, 4099, (1 << 20) + 5};

// Element i of what a rank brings: small whole numbers, whose sums are exact in every type.
int value(int rank, int64_t i) { return static_cast<int>((7 * i + 3 * rank + i / 11) % 5); }

template <class T>
void put(std::byte* at, int number) {
  const T element(static_cast<T>(static_cast<float>(number)));
  std::memcpy(at, &element, sizeof element);
}

template <class T>
double get(const std::byte* at) {
  T element{};
  std::memcpy(&element, at, sizeof element);
  return static_cast<double>(element);
}

void put(DType dtype, std::byte* at, int number) {
  switch (dtype) {
    case DType::f64: return put<double>(at, number);
    case DType::f32: return put<float>(at, number);
    case DType::bf16: return put<bf16>(at, number);
    case DType::f16: return put<f16>(at, number);
    case DType::i64: return put<int64_t>(at, number);
    case DType::i32: return put<int32_t>(at, number);
    case DType::u8: return put<uint8_t>(at, number);
  }
}

double get(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::f64: return get<double>(at);
    case DType::f32: return get<float>(at);
    case DType::bf16: return get<bf16>(at);
    case DType::f16: return get<f16>(at);
    case DType::i64: return get<int64_t>(at);
    case DType::i32: return get<int32_t>(at);
    case DType::u8: return get<uint8_t>(at);
  }
  return 0;
}

using Number = std::function<int(int64_t i)>;

// A tensor in memory of its own.
class Filled {
 public:
  Filled(Device& device, DType dtype, int64_t count, const Number& number)
      : device_(device),
        buffer_(device, std::max<size_t>(1, static_cast<size_t>(count) * size_of(dtype)), "check"),
        tensor_(tensor_over(buffer_.data(), dtype, {count})) {
    std::vector<std::byte> host(bytes_of(tensor_));
    for (int64_t i = 0; i < count; ++i) put(dtype, host.data() + offset(i), number(i));
    device.upload(host.data(), buffer_.data(), host.size());
  }

  const Tensor& tensor() const { return tensor_; }
  Tensor part(int64_t begin, int64_t count) const { return slice(tensor_, 0, begin, count); }

  // Waits for the stream.
  void expect(Stream stream, const std::string& what, const Number& number) const {
    stream.synchronize();
    std::vector<std::byte> host(bytes_of(tensor_));
    device_.download(buffer_.data(), host.data(), host.size());
    for (int64_t i = 0; i < tensor_.shape.elements(); ++i) {
      const double found = get(tensor_.dtype, host.data() + offset(i));
      BEV_CHECK(found == number(i), Numerics, "{}: element {} of {} is {} instead of {}", what, i,
                tensor_.shape.elements(), found, number(i));
    }
  }

 private:
  size_t offset(int64_t i) const { return static_cast<size_t>(i) * size_of(tensor_.dtype); }

  Device& device_;
  Buffer buffer_;
  Tensor tensor_;
};

class Checks {
 public:
  Checks(Device& device, Communicator& world, const std::function<void(const std::string&)>& passed)
      : device_(device), world_(world), passed_(passed), arena_(device, 0, "none") {}

  void all() {
    for (const DType dtype : kTypes) {
      for (const int64_t count : kCounts) collectives(world_, all_ranks(), dtype, count);
      passed_(format("all_reduce, all_gather, reduce_scatter, broadcast of {}", name_of(dtype)));
      for (int which = 0; which < kUnevenCases; ++which) {
        all_to_all(world_, all_ranks(), dtype, which);
        shards(world_, all_ranks(), dtype, which);
      }
      passed_(format("all_to_all and shards of unequal size of {}", name_of(dtype)));
    }
    for (const int64_t count : kCounts) even_blocks(count);
    passed_("all_to_all of equal blocks");
    empty_tensors();
    parts();
    other_order();
    two_streams();
    agreements();
    pipes();
    far_pipes();
  }

 private:
  using Ranks = std::vector<int>;

  Exec exec(Stream stream) { return {device_, stream, arena_, arena_, arena_}; }
  Exec exec() { return exec(device_.compute_stream()); }
  Stream stream() { return device_.compute_stream(); }

  Ranks all_ranks() const {
    Ranks ranks(static_cast<size_t>(world_.size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  static int sum(const Ranks& ranks, int64_t i) {
    int result = 0;
    for (const int rank : ranks) result += value(rank, i);
    return result;
  }

  // `ranks`: who its members are in the world.
  void collectives(Communicator& group, const Ranks& ranks, DType dtype, int64_t count) {
    Exec ex = exec();
    const int size = group.size(), here = world_.rank();
    const std::string of =
        format(" of {} {} among {} at {}", count, name_of(dtype), size, group.rank());
    const Number mine = [&](int64_t i) { return value(here, i); };
    const auto extreme = [&](int64_t i, bool most) {
      int result = value(ranks.front(), i);
      for (const int rank : ranks)
        result = most ? std::max(result, value(rank, i)) : std::min(result, value(rank, i));
      return result;
    };

    const Filled summed(device_, dtype, count, mine), most(device_, dtype, count, mine),
        least(device_, dtype, count, mine);
    group.all_reduce(ex, summed.tensor());
    group.all_reduce(ex, most.tensor(), ReduceOp::Max);
    group.all_reduce(ex, least.tensor(), ReduceOp::Min);
    summed.expect(stream(), "sum" + of, [&](int64_t i) { return sum(ranks, i); });
    most.expect(stream(), "max" + of, [&](int64_t i) { return extreme(i, true); });
    least.expect(stream(), "min" + of, [&](int64_t i) { return extreme(i, false); });

    const int64_t rows = group.rank() * count;
    const Number gathered = [&](int64_t i) {
      return value(ranks[static_cast<size_t>(i / count)], i % count);
    };
    const Number nothing = [](int64_t) { return 9; };
    const Filled shard(device_, dtype, count, mine), apart(device_, dtype, count * size, nothing);
    group.all_gather(ex, shard.tensor(), apart.tensor());
    apart.expect(stream(), "all_gather" + of, gathered);
    const Filled in_place(device_, dtype, count * size, [&](int64_t i) {
      return i / count == group.rank() ? value(here, i % count) : 9;
    });
    group.all_gather(ex, in_place.part(rows, count), in_place.tensor());
    in_place.expect(stream(), "all_gather in place" + of, gathered);

    const Filled whole(device_, dtype, count * size, mine), own(device_, dtype, count, nothing);
    const Number scattered = [&](int64_t i) { return sum(ranks, rows + i); };
    group.reduce_scatter(ex, whole.tensor(), own.tensor());
    own.expect(stream(), "reduce_scatter" + of, scattered);
    whole.expect(stream(), "what reduce_scatter reads" + of, mine);
    group.reduce_scatter(ex, whole.tensor(), whole.part(rows, count));
    group.all_gather(ex, whole.part(rows, count), whole.tensor());
    whole.expect(stream(), "reduce_scatter in place" + of,
                 [&](int64_t i) { return sum(ranks, i); });

    for (int root = 0; root < size; ++root) {
      const Filled told(device_, dtype, count, mine);
      group.broadcast(ex, told.tensor(), root);
      told.expect(stream(), format("broadcast from {}", root) + of,
                  [&](int64_t i) { return value(ranks[static_cast<size_t>(root)], i); });
    }
  }

  // Element i of what one rank of the world sends another.
  static int between(int from, int to, int64_t i) { return value(7 * from + to, i); }

  // `ranks`: who the members of the group are in the world.
  void all_to_all(Communicator& group, const Ranks& ranks, DType dtype, int which) {
    Exec ex = exec();
    const int size = group.size(), here = world_.rank();
    const std::vector<int64_t> to = rows_to_all(which, group.rank(), size);
    const std::vector<int64_t> from = rows_from_all(which, group.rank(), size);
    // The member whose block holds element i, and the place of i in that block.
    const auto place = [&](const std::vector<int64_t>& counts, int64_t i) {
      size_t r = 0;
      for (; i >= counts[r]; ++r) i -= counts[r];
      return std::pair(ranks[r], i);
    };
    const Number sent = [&](int64_t i) {
      const auto [rank, at] = place(to, i);
      return between(here, rank, at);
    };
    const auto sum = [](const std::vector<int64_t>& counts) {
      return std::accumulate(counts.begin(), counts.end(), int64_t{0});
    };
    const Filled in(device_, dtype, sum(to), sent);
    const Filled out(device_, dtype, sum(from), [](int64_t) { return 9; });
    group.all_to_all(ex, in.tensor(), to, out.tensor(), from);
    const std::string of = format(" of {}, case {} among {}", name_of(dtype), which, size);
    out.expect(stream(), "all_to_all" + of, [&](int64_t i) {
      const auto [rank, at] = place(from, i);
      return between(rank, here, at);
    });
    in.expect(stream(), "what all_to_all reads" + of, sent);
  }

  void even_blocks(int64_t count) {
    Exec ex = exec();
    const int size = world_.size(), here = world_.rank();
    const Filled in(device_, DType::f32, count * size, [&](int64_t i) {
      return between(here, static_cast<int>(i / count), i % count);
    });
    const Filled out(device_, DType::f32, count * size, [](int64_t) { return 9; });
    world_.all_to_all(ex, in.tensor(), out.tensor());
    out.expect(stream(), format("all_to_all of {} for each", count),
               [&](int64_t i) { return between(static_cast<int>(i / count), here, i % count); });
  }

  // all_gather and reduce_scatter of unequal shards.
  void shards(Communicator& group, const Ranks& ranks, DType dtype, int which) {
    Exec ex = exec();
    const std::vector<int64_t> bounds = uneven_bounds(which, group.size());
    const int64_t begin = bounds[static_cast<size_t>(group.rank())];
    const int64_t count = bounds[static_cast<size_t>(group.rank()) + 1] - begin;
    const std::string of = format(" of {}, case {} among {}", name_of(dtype), which, group.size());
    const Number nothing = [](int64_t) { return 9; };
    const Number mine = [&](int64_t i) { return value(world_.rank(), i); };
    const Number gathered = [&](int64_t i) {
      size_t r = 0;
      while (i >= bounds[r + 1]) ++r;
      return value(ranks[r], i - bounds[r]);
    };
    const Filled shard(device_, dtype, count, mine), apart(device_, dtype, bounds.back(), nothing);
    group.all_gather(ex, shard.tensor(), apart.tensor(), bounds);
    apart.expect(stream(), "all_gather of unequal shards" + of, gathered);
    const Filled in_place(device_, dtype, bounds.back(), [&](int64_t i) {
      return i >= begin && i < begin + count ? value(world_.rank(), i - begin) : 9;
    });
    group.all_gather(ex, in_place.part(begin, count), in_place.tensor(), bounds);
    in_place.expect(stream(), "all_gather of unequal shards in place" + of, gathered);

    const Filled whole(device_, dtype, bounds.back(), mine), own(device_, dtype, count, nothing);
    const Number scattered = [&](int64_t i) { return sum(ranks, begin + i); };
    group.reduce_scatter(ex, whole.tensor(), bounds, own.tensor());
    own.expect(stream(), "reduce_scatter to unequal shards" + of, scattered);
    whole.expect(stream(), "what reduce_scatter to unequal shards reads" + of, mine);
    group.reduce_scatter(ex, whole.tensor(), bounds, whole.part(begin, count));
    group.all_gather(ex, whole.part(begin, count), whole.tensor(), bounds);
    whole.expect(stream(), "reduce_scatter to unequal shards in place" + of,
                 [&](int64_t i) { return sum(ranks, i); });
  }

  void empty_tensors() {
    Exec ex = exec();
    const Filled none(device_, DType::f32, 0, [](int64_t) { return 0; });
    world_.all_reduce(ex, none.tensor());
    world_.broadcast(ex, none.tensor(), 0);
    stream().synchronize();
    passed_("collectives of nothing");
  }

  // Rows and columns of a grid, and the world again: every rank is in several groups.
  void parts() {
    const int columns = world_.size() % 2 == 0 ? world_.size() / 2 : world_.size();
    const int row = world_.rank() / columns, column = world_.rank() % columns;
    Ranks in_row, in_column;
    for (int rank = 0; rank < world_.size(); ++rank) {
      if (rank / columns == row) in_row.push_back(rank);
      if (rank % columns == column) in_column.push_back(rank);
    }
    const auto along = world_.split(in_row), across = world_.split(in_column);
    const auto again = along->split(Ranks{along->rank()});
    for (int turn = 0; turn < 3; ++turn) {
      collectives(*along, in_row, DType::bf16, 1021);
      collectives(*across, in_column, DType::f32, 77);
      all_to_all(*along, in_row, DType::bf16, 2);
      shards(*across, in_column, DType::f32, 4);
      collectives(world_, all_ranks(), DType::f32, 5);
    }
    collectives(*again, {world_.rank()}, DType::f32, 31);
    passed_(format("groups of {} and of {} ranks, and of one", in_row.size(), in_column.size()));
  }

  void other_order() {
    Ranks backwards = all_ranks();
    std::reverse(backwards.begin(), backwards.end());
    const auto group = world_.split(backwards);
    collectives(*group, backwards, DType::f32, 100);
    all_to_all(*group, backwards, DType::f32, 4);
    shards(*group, backwards, DType::f32, 2);
    passed_("a group in another order");
  }

  // The same ranks on two streams, issued in opposite orders: neither may wait for the other.
  void two_streams() {
    const auto other = world_.split(all_ranks());
    Exec compute = exec(), exchange = exec(device_.comm_stream());
    const int64_t count = (1 << 18) + 3;
    const Number mine = [&](int64_t i) { return value(world_.rank(), i); };
    const Number total = [&](int64_t i) { return sum(all_ranks(), i); };
    for (int turn = 0; turn < 4; ++turn) {
      const Filled a(device_, DType::f32, count, mine), b(device_, DType::f32, count, mine);
      // The first time makes the communicators, in the order of all.
      const bool exchange_first = turn > 0 && world_.rank() % 2 == 1;
      if (exchange_first) other->all_reduce(exchange, b.tensor());
      world_.all_reduce(compute, a.tensor());
      if (!exchange_first) other->all_reduce(exchange, b.tensor());
      a.expect(device_.compute_stream(), "sum on the compute stream", total);
      b.expect(device_.comm_stream(), "sum on the exchange stream", total);
    }
    passed_("two streams at once");
  }

  void agreements() {
    const int size = world_.size();
    BEV_CHECK(world_.all_reduce_max_host(10 * world_.rank() - 5) == 10 * (size - 1) - 5, Numerics,
              "the largest of what ranks bring is another");
    world_.barrier(std::chrono::seconds(60));
    BEV_CHECK(world_.all_reduce_max_host(-world_.rank()) == 0, Numerics,
              "the largest of numbers up to 0");
    passed_("largest, barrier");
  }

  // All send both ways before anybody receives.
  void pipes() {
    if (world_.size() == 1) return;
    world_.connect_neighbours();
    constexpr int kEach = 6;
    const int64_t count = (1 << 19) + 1;
    const int size = world_.size(), here = world_.rank();
    const int next = (here + 1) % size, before = (here + size - 1) % size;
    const auto message = [&](int from, Channel channel, int n) {
      return [=](int64_t i) { return value(from + 13 * n + (channel == Channel::Forward), i); };
    };
    Exec ex = exec();
    for (int turn = 0; turn < 3; ++turn) {
      // Memory first: to allocate some may wait for whatever runs on a GPU.
      std::deque<Filled> out, in;
      for (int n = 0; n < kEach; ++n) {
        for (const Channel channel : {Channel::Forward, Channel::Backward}) {
          out.emplace_back(device_, DType::f32, count, message(here, channel, n));
          in.emplace_back(device_, DType::f32, count, [](int64_t) { return 9; });
        }
      }
      std::vector<SendTicket> sent;
      for (size_t n = 0; n < out.size(); n += 2) {
        sent.push_back(world_.send(ex, out[n].tensor(), next, Channel::Forward));
        sent.push_back(world_.send(ex, out[n + 1].tensor(), before, Channel::Backward));
      }
      // The stream is free while they wait.
      stream().synchronize();
      for (size_t n = 0; n < in.size(); n += 2) {
        world_.recv(ex, in[n].tensor(), before, Channel::Forward);
        world_.recv(ex, in[n + 1].tensor(), next, Channel::Backward);
      }
      for (const SendTicket& each : sent) world_.wait_send(ex, each);
      for (int n = 0; n < kEach; ++n) {
        const auto at = static_cast<size_t>(2 * n);
        in[at].expect(stream(), "what came forward", message(before, Channel::Forward, n));
        in[at + 1].expect(stream(), "what came back", message(next, Channel::Backward, n));
      }
    }
    passed_(format("{} sends each way, all before the first recv, three times", kEach));
  }

  // To the first rank from all others, as a model is gathered: these pipes were not opened.
  void far_pipes() {
    Exec ex = exec();
    constexpr int64_t kCount = 1000;
    for (int turn = 0; turn < 2; ++turn) {
      if (world_.rank() != 0) {
        const Filled out(device_, DType::bf16, kCount,
                         [&](int64_t i) { return value(world_.rank(), i); });
        world_.wait_send(ex, world_.send(ex, out.tensor(), 0, Channel::Forward));
        stream().synchronize();
        continue;
      }
      for (int from = 1; from < world_.size(); ++from) {
        const Filled in(device_, DType::bf16, kCount, [](int64_t) { return 9; });
        world_.recv(ex, in.tensor(), from, Channel::Forward);
        in.expect(stream(), format("what came from {}", from),
                  [&](int64_t i) { return value(from, i); });
      }
    }
    passed_("the first rank receives from all");
  }

  Device& device_;
  Communicator& world_;
  const std::function<void(const std::string&)>& passed_;
  Arena arena_;
};

}  // namespace

void check_world(Device& device, Communicator& world,
                 const std::function<void(const std::string&)>& passed) {
  Checks(device, world, passed).all();
}

double seconds_of_all_reduce(Device& device, Communicator& group, size_t bytes) {
  constexpr int kTurns = 5;
  Arena arena(device, 0, "none");
  Exec ex{device, device.compute_stream(), arena, arena, arena};
  const Buffer buffer(device, bytes, "sums");
  const Tensor tensor =
      tensor_over(buffer.data(), DType::f32, {static_cast<int64_t>(bytes / sizeof(float))});
  group.all_reduce(ex, tensor);
  ex.stream.synchronize();
  group.barrier(std::chrono::seconds(60));
  const auto start = std::chrono::steady_clock::now();
  for (int turn = 0; turn < kTurns; ++turn) group.all_reduce(ex, tensor);
  ex.stream.synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kTurns;
}

void sum_for_ever(Device& device, Communicator& world, const std::function<void(int turn)>& turn) {
  Arena arena(device, 0, "none");
  Exec ex{device, device.compute_stream(), arena, arena, arena};
  const Buffer buffer(device, 1 << 20, "sums");
  const Tensor tensor = tensor_over(buffer.data(), DType::f32, {1 << 18});
  for (int n = 0;; ++n) {
    turn(n);
    world.all_reduce(ex, tensor);
    ex.stream.synchronize();
  }
}

}  // namespace bev::test
