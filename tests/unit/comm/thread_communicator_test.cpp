// Ranks as threads. Every test names the fault that makes it fail.
#include "comm/thread_communicator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>

#include "ops/make_device.h"
#include "support/expect_error.h"

namespace bev {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLimit{20000};

// What a rank needs besides its communicator.
struct Place {
  explicit Place(DeviceKind kind = DeviceKind::Reference) : device(make_device(kind, 1)) {}
  std::unique_ptr<Device> device;
  Arena none{*device, 0, "none"};
  Cost cost;
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

}  // namespace
}  // namespace bev
