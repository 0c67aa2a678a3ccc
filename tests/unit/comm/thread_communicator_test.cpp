// Ranks as threads. Every test names the fault that makes it fail.
#include "comm/thread_communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>

#include "ops/make_device.h"
#include "support/expect_error.h"
#include "support/uneven_rows.h"

namespace bev {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLimit{20000};

// What a rank needs besides its communicator.
struct Place {
  explicit Place(DeviceKind kind = DeviceKind::Reference) : device(make_device(kind, 1)) {}
  std::unique_ptr<Device> device;
  Arena none{*device, 0, "none"};
  CostLog cost;
  Exec ex{*device, device->compute_stream(), none, none, none, &cost};
};

template <class T>
Tensor over(std::vector<T>& values, DType dtype = DType::f64) {
  return tensor_over(reinterpret_cast<std::byte*>(values.data()), dtype,
                     {static_cast<int64_t>(values.size())});
}

// Element i of rank r.
double value_of(int rank, int64_t i) { return 100.0 * rank + static_cast<double>(i * i % 7); }

std::vector<double> values_of(int rank, int64_t count) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(value_of(rank, i));
  return values;
}

// Fails when a slice is left out, is combined by two ranks, or is read after it was overwritten.
TEST(ThreadRanks, AllReduce) {
  for (const int size : {1, 2, 3, 4}) {
    for (const int64_t count : {0, 1, 2, 5, 3000}) {
      for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min}) {
        run_ranks(size, kLimit, [&](Communicator& world) {
          Place place;
          std::vector<double> values = values_of(world.rank(), count);
          world.all_reduce(place.ex, over(values), op);
          for (int64_t i = 0; i < count; ++i) {
            double expected = op == ReduceOp::Sum ? size * value_of(0, i) + 50.0 * size * (size - 1)
                              : op == ReduceOp::Max ? value_of(size - 1, i)
                                                    : value_of(0, i);
            EXPECT_EQ(values[static_cast<size_t>(i)], expected) << size << " " << count << " " << i;
          }
        });
      }
    }
  }
}

// Fails when short numbers are rounded after each addition, or ranks get different bits.
TEST(ThreadRanks, SumsOfShortNumbersAreRoundedOnce) {
  run_ranks(3, kLimit, [](Communicator& world) {
    Place place(DeviceKind::Cpu);
    // 256 + 1 + 1: each 1 alone would be lost.
    std::vector<bf16> values(9, bf16(world.rank() == 0 ? 256.0f : 1.0f));
    world.all_reduce(place.ex, over(values, DType::bf16));
    for (const bf16 value : values) EXPECT_EQ(static_cast<float>(value), 258.0f);
  });
}

// Fails when rows go to the wrong place or the shard of another rank is kept.
TEST(ThreadRanks, GatherScatterAndBroadcast) {
  for (const int size : {1, 2, 4}) {
    run_ranks(size, kLimit, [&](Communicator& world) {
      Place place;
      std::vector<double> shard = values_of(world.rank(), 3);
      std::vector<double> whole(static_cast<size_t>(3 * size), -1);
      world.all_gather(place.ex, over(shard), over(whole));
      for (int r = 0; r < size; ++r) {
        for (int64_t i = 0; i < 3; ++i)
          EXPECT_EQ(whole[static_cast<size_t>(3 * r + i)], value_of(r, i));
      }
      std::vector<double> sums(3, -1);
      world.reduce_scatter(place.ex, over(whole), over(sums));
      for (int64_t i = 0; i < 3; ++i)
        EXPECT_EQ(sums[static_cast<size_t>(i)], size * value_of(world.rank(), i));
      std::vector<double> told = values_of(world.rank(), 4);
      world.broadcast(place.ex, over(told), size - 1);
      EXPECT_EQ(told, values_of(size - 1, 4));
    });
  }
}

// The byte i of what one rank sends another.
std::byte byte_between(int from, int to, size_t i) {
  return static_cast<std::byte>((static_cast<size_t>(89 * from + 31 * to) + 7 * i + i / 251) &
                                0xFF);
}

using Rows = std::vector<int64_t>;

// The blocks that a rank sends (`sends`) or expects, one after the other.
std::vector<std::byte> blocks_of(int rank, const Rows& rows, size_t row_bytes, bool sends) {
  std::vector<std::byte> bytes;
  for (size_t r = 0; r < rows.size(); ++r) {
    const int peer = static_cast<int>(r);
    for (size_t i = 0; i < static_cast<size_t>(rows[r]) * row_bytes; ++i)
      bytes.push_back(sends ? byte_between(rank, peer, i) : byte_between(peer, rank, i));
  }
  return bytes;
}

int64_t total_of(const Rows& rows) { return std::accumulate(rows.begin(), rows.end(), int64_t{0}); }

// Fails when a block goes to another rank or place, when a count of 0 moves the next blocks,
// or when a rank's own block is left out or counted as sent.
TEST(ThreadRanks, AllToAll) {
  constexpr int64_t kWidth = 3;
  for (const int size : {1, 2, 3, 4, 5}) {
    for (int which = 0; which < test::kUnevenCases; ++which) {
      for (const DType dtype : {DType::u8, DType::bf16, DType::i32, DType::f64}) {
        run_ranks(size, kLimit, [&](Communicator& world) {
          Place place;
          const int here = world.rank();
          const size_t row_bytes = kWidth * size_of(dtype);
          const Rows to = test::rows_to_all(which, here, size);
          const Rows from = test::rows_from_all(which, here, size);
          std::vector<std::byte> in = blocks_of(here, to, row_bytes, true);
          std::vector<std::byte> out(static_cast<size_t>(total_of(from)) * row_bytes);
          world.all_to_all(place.ex, tensor_over(in.data(), dtype, {total_of(to), kWidth}), to,
                           tensor_over(out.data(), dtype, {total_of(from), kWidth}), from);
          EXPECT_EQ(out, blocks_of(here, from, row_bytes, false)) << size << " case " << which;
          EXPECT_EQ(in, blocks_of(here, to, row_bytes, true));
          const auto own = static_cast<size_t>(to[static_cast<size_t>(here)]);
          EXPECT_EQ(world.bytes_sent(), static_cast<double>(in.size() - own * row_bytes));
        });
      }
    }
  }
}

// Fails when blocks are not cut evenly.
TEST(ThreadRanks, AllToAllOfEqualBlocks) {
  for (const int size : {1, 2, 3, 5}) {
    for (const int64_t rows : {0, 1, 4}) {
      run_ranks(size, kLimit, [&](Communicator& world) {
        Place place;
        const Rows each(static_cast<size_t>(size), rows);
        std::vector<std::byte> in = blocks_of(world.rank(), each, 6, true), out(in.size());
        world.all_to_all(place.ex, tensor_over(in.data(), DType::f16, {rows * size, 3}),
                         tensor_over(out.data(), DType::f16, {rows * size, 3}));
        EXPECT_EQ(out, blocks_of(world.rank(), each, 6, false)) << size << " " << rows;
      });
    }
  }
}

// Fails when rows of unequal shards go to the wrong place, in place or not.
TEST(ThreadRanks, ShardsOfUnequalSize) {
  constexpr int64_t kWidth = 2;
  for (const int size : {1, 2, 3, 4, 5}) {
    for (int which = 0; which < test::kUnevenCases; ++which) {
      run_ranks(size, kLimit, [&](Communicator& world) {
        Place place;
        const Rows bounds = test::uneven_bounds(which, size);
        const int64_t begin = bounds[static_cast<size_t>(world.rank())];
        const int64_t rows = bounds[static_cast<size_t>(world.rank()) + 1] - begin;
        const auto as_rows = [&](std::vector<double>& values) {
          return reshape(over(values), {static_cast<int64_t>(values.size()) / kWidth, kWidth});
        };
        std::vector<double> shard = values_of(world.rank(), rows * kWidth);
        std::vector<double> whole(static_cast<size_t>(bounds.back() * kWidth), -1), expected;
        for (int r = 0; r < size; ++r) {
          const auto own = values_of(
              r, (bounds[static_cast<size_t>(r) + 1] - bounds[static_cast<size_t>(r)]) * kWidth);
          expected.insert(expected.end(), own.begin(), own.end());
        }
        world.all_gather(place.ex, as_rows(shard), as_rows(whole), bounds);
        EXPECT_EQ(whole, expected) << size << " case " << which;
        std::vector<double> in_place(whole.size(), -1);
        std::copy(shard.begin(), shard.end(),
                  in_place.begin() + static_cast<ptrdiff_t>(begin * kWidth));
        const Tensor own_rows = slice(as_rows(in_place), 0, begin, rows);
        world.all_gather(place.ex, own_rows, as_rows(in_place), bounds);
        EXPECT_EQ(in_place, expected) << size << " case " << which;

        std::vector<double> sums(shard.size(), -1);
        world.reduce_scatter(place.ex, as_rows(whole), bounds, as_rows(sums));
        for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], size * shard[i]);
        world.reduce_scatter(place.ex, as_rows(in_place), bounds, own_rows);
        for (size_t i = 0; i < sums.size(); ++i)
          EXPECT_EQ(in_place[static_cast<size_t>(begin * kWidth) + i], sums[i]);
      });
    }
  }
}

// Fails when the parts of a shard are added in another order than by reduce_scatter.
TEST(ThreadRanks, EqualBoundsChangeNoBit) {
  constexpr int64_t kRows = 1021;
  run_ranks(5, kLimit, [&](Communicator& world) {
    Place place(DeviceKind::Cpu);
    std::vector<float> values;
    for (int64_t i = 0; i < kRows * world.size(); ++i)
      values.push_back(static_cast<float>(std::sin(static_cast<double>(i * i + world.rank())) *
                                          std::pow(10.0, (world.rank() * i) % 7)));
    std::vector<float> plain(kRows), bounded(kRows);
    Rows bounds;
    for (int r = 0; r <= world.size(); ++r) bounds.push_back(kRows * r);
    world.reduce_scatter(place.ex, over(values, DType::f32), over(plain, DType::f32));
    world.reduce_scatter(place.ex, over(values, DType::f32), bounds, over(bounded, DType::f32));
    EXPECT_EQ(bounded, plain);
  });
}

// Fails when tensors of one channel overtake each other or channels are mixed up.
TEST(ThreadRanks, MessagesKeepTheirOrderInTheirChannel) {
  run_ranks(2, kLimit, [](Communicator& world) {
    Place place;
    std::vector<double> a{1}, b{2}, c{3}, got{0};
    if (world.rank() == 0) {
      static_cast<void>(world.send(place.ex, over(a), 1, Channel::Forward));
      static_cast<void>(world.send(place.ex, over(b), 1, Channel::Forward));
      static_cast<void>(world.send(place.ex, over(c), 1, Channel::Backward));
      world.barrier(std::chrono::seconds(20));
      return;
    }
    const auto next = [&](Channel channel) {
      world.recv(place.ex, over(got), 0, channel);
      return got[0];
    };
    EXPECT_EQ(next(Channel::Backward), 3);
    EXPECT_EQ(next(Channel::Forward), 1);
    EXPECT_EQ(next(Channel::Forward), 2);
    world.barrier(std::chrono::seconds(20));
  });
}

// Fails when groups share a meeting place, or a second split of the same ranks is taken for the
// first.
TEST(ThreadRanks, GroupsAreIndependent) {
  run_ranks(4, kLimit, [](Communicator& world) {
    Place place;
    const int r = world.rank();
    const std::vector<int> row = {r / 2 * 2, r / 2 * 2 + 1}, column = {r % 2, r % 2 + 2};
    const auto rows = world.split(row), columns = world.split(column), again = world.split(row);
    EXPECT_EQ(rows->rank(), r % 2);
    EXPECT_EQ(columns->rank(), r / 2);
    for (int turn = 0; turn < 50; ++turn) {
      std::vector<double> x{static_cast<double>(r)}, y = x, z = x;
      rows->all_reduce(place.ex, over(x));
      columns->all_reduce(place.ex, over(y));
      again->all_reduce(place.ex, over(z));
      EXPECT_EQ(x[0], row[0] + row[1]);
      EXPECT_EQ(y[0], column[0] + column[1]);
      EXPECT_EQ(z[0], x[0]);
    }
  });
}

// Fails when somebody's value is left out, or is read when it is gone.
TEST(ThreadRanks, AgreeOnTheLargest) {
  run_ranks(3, kLimit, [](Communicator& world) {
    for (int turn = 0; turn < 500; ++turn)
      EXPECT_EQ(world.all_reduce_max_host((world.rank() + turn) % 3 == 0 ? turn : -turn), turn);
  });
}

// Fails when a rank that leaves a barrier late sees what another has brought to the next call.
TEST(ThreadRanks, ABarrierEndsBeforeTheNextCallBegins) {
  run_ranks(3, kLimit, [](Communicator& world) {
    Place place;
    for (int turn = 0; turn < 2000; ++turn) {
      std::vector<double> x{1};
      world.barrier(std::chrono::seconds(20));
      world.all_reduce(place.ex, over(x));
      EXPECT_EQ(x[0], 3);
    }
  });
}

// Fails when a sender is sent away by the failure of a third rank while its memory is being copied.
TEST(ThreadRanks, WhoHasSentStaysUntilItIsCopied) {
  for (int turn = 0; turn < 5; ++turn) {
    std::atomic<bool> sends = false, copies = false;
    test::expect_error(ErrorKind::Data, "the disk is gone", [&] {
      run_ranks(3, kLimit, [&](Communicator& world) {
        Place place;
        std::vector<double> values(world.rank() < 2 ? size_t{1} << 22 : 0);
        if (world.rank() == 0) {
          std::fill(values.begin(), values.end(), 7.0);
          const SendTicket sent = world.send(place.ex, over(values), 1, Channel::Forward);
          sends = true;
          try {
            world.wait_send(place.ex, sent);
          } catch (const Error&) {
            std::fill(values.rbegin(), values.rend(), -1.0);
            throw;
          }
        } else if (world.rank() == 1) {
          while (!sends) std::this_thread::yield();
          copies = true;
          world.recv(place.ex, over(values), 0, Channel::Forward);
          for (const double value : values) ASSERT_EQ(value, 7.0);
        } else {
          while (!copies) std::this_thread::yield();
          std::this_thread::sleep_for(milliseconds(turn));
          throw Error(ErrorKind::Data, "the disk is gone");
        }
      });
    });
  }
}

// The same, with a copy that goes on until the sender would have left.
TEST(ThreadRanks, WhoHasSentStaysDuringASlowCopy) {
  ThreadGroup group(std::make_shared<ThreadFate>(), {0, 1, 2});
  std::vector<double> values{7};
  const ConstTensor message = over(values);
  const uint64_t number = group.post(0, 1, Channel::Forward, {message.data, bytes_of(message), {}});
  std::atomic<bool> has_left = false;
  std::thread sender([&] {
    try {
      group.await_collected(0, {1, Channel::Forward, number}, kLimit);
    } catch (const Error&) {
    }
    has_left = true;
  });
  group.collect(0, 1, Channel::Forward, bytes_of(message), kLimit, [&](const ThreadGroup::Post&) {
    group.abandon(2, "the disk is gone");
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_FALSE(has_left);
    return ThreadGroup::Mark{};
  });
  sender.join();
}

// Fails when a peer of a failed rank hangs, or is not told who failed and why.
TEST(ThreadRanks, AFailedRankIsNamed) {
  for (int culprit = 0; culprit < 3; ++culprit) {
    std::atomic<int> told = 0;
    test::expect_error(ErrorKind::Data, "the disk is gone", [&] {
      run_ranks(3, kLimit, [&](Communicator& world) {
        Place place;
        std::vector<double> x{1};
        const auto part = world.split(std::vector<int>{0, 1, 2});
        world.all_reduce(place.ex, over(x));
        if (world.rank() == culprit) throw Error(ErrorKind::Data, "the disk is gone");
        try {
          if (world.rank() % 2 == 0) {
            world.recv(place.ex, over(x), culprit, Channel::Forward);
          } else {
            part->all_reduce(place.ex, over(x));
          }
        } catch (const Error& e) {
          EXPECT_EQ(name_of(e.kind), name_of(ErrorKind::Comm));
          const std::string text = e.what();
          EXPECT_NE(text.find("rank " + std::to_string(culprit) + " failed: "), std::string::npos);
          EXPECT_NE(text.find("the disk is gone"), std::string::npos);
          ++told;
          throw;
        }
      });
    });
    EXPECT_EQ(told, 2);
  }
}

// Fails when somebody waits for ever, or the message does not say for whom.
TEST(ThreadRanks, NobodyWaitsForEver) {
  test::expect_error(ErrorKind::Comm, "in barrier for rank 1", [] {
    run_ranks(2, milliseconds(50), [](Communicator& world) {
      if (world.rank() == 1) {
        std::this_thread::sleep_for(milliseconds(400));
        return;
      }
      world.barrier(std::chrono::seconds(0));
    });
  });
  test::expect_error(ErrorKind::Comm, "in recv for rank 0", [] {
    run_ranks(2, milliseconds(50), [](Communicator& world) {
      Place place;
      std::vector<double> x{1};
      if (world.rank() == 1) world.recv(place.ex, over(x), 0, Channel::Forward);
    });
  });
}

// Fails when ranks that call different things get something instead of an error, or when only the
// one that differs is told.
TEST(ThreadRanks, DifferentCallsAreRefused) {
  std::atomic<int> refused = 0;
  test::expect_error(ErrorKind::Internal, "rank 1 calls broadcast of 8 bytes", [&] {
    run_ranks(3, kLimit, [&](Communicator& world) {
      Place place;
      std::vector<double> x{1};
      try {
        if (world.rank() == 1) {
          world.broadcast(place.ex, over(x), 0);
        } else {
          world.all_reduce(place.ex, over(x));
        }
      } catch (const Error& e) {
        if (e.kind == ErrorKind::Internal) ++refused;
        throw;
      }
    });
  });
  EXPECT_EQ(refused, 3);
  test::expect_error(ErrorKind::Internal, "rank 1 calls all_reduce", [] {
    run_ranks(2, kLimit, [](Communicator& world) {
      Place place;
      std::vector<double> x{1};
      if (world.rank() == 0) {
        world.barrier(std::chrono::seconds(20));
      } else {
        world.all_reduce(place.ex, over(x));
      }
    });
  });
}

// Fails when memory is read though the counts of two ranks contradict each other, or when a rank
// that is right continues.
TEST(ThreadRanks, CountsThatContradictAreRefused) {
  std::atomic<int> refused = 0;
  const auto refuses = [&](Communicator& world, FunctionRef<void(Exec & ex)> call) {
    Place place;
    try {
      call(place.ex);
    } catch (const Error& e) {
      if (e.kind == ErrorKind::Internal) ++refused;
      if (world.rank() == 0) throw;
    }
  };
  test::expect_error(
      ErrorKind::Internal, "rank 0 sends 2 elements to rank 1, which expects 1", [&] {
        run_ranks(3, kLimit, [&](Communicator& world) {
          std::vector<double> in(3, 1), out(3, 1);
          const Rows rows = world.rank() == 0 ? Rows{0, 2, 1} : Rows{1, 1, 1};
          refuses(world, [&](Exec& ex) { world.all_to_all(ex, over(in), rows, over(out), rows); });
        });
      });
  EXPECT_EQ(refused, 3);
  refused = 0;
  test::expect_error(ErrorKind::Internal, "rank 2 calls all_gather with bounds 0, 1, 3, 4", [&] {
    run_ranks(3, kLimit, [&](Communicator& world) {
      std::vector<double> shard(1, 1), whole(4, 1);
      const Rows bounds = world.rank() == 2 ? Rows{0, 1, 3, 4} : Rows{0, 1, 2, 4};
      refuses(world, [&](Exec& ex) { world.all_gather(ex, over(shard), over(whole), bounds); });
    });
  });
  EXPECT_EQ(refused, 3);
}

}  // namespace
}  // namespace bev
