// Ranks as threads that share a GPU: their work is ordered by events, not by the host. Every test
// names the fault that makes it fail.
#include <gtest/gtest.h>

#include "comm/thread_communicator.h"
#include "device/memory.h"
#include "ops/elementwise.h"
#include "ops/make_device.h"

namespace bev {
namespace {

constexpr std::chrono::milliseconds kCudaLimit{60000};
constexpr int64_t kCount = 20'000'003;

class CudaThreadRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cuda(); !why.empty()) GTEST_SKIP() << why;
  }
};

// A rank's device, with three tensors of f32.
struct CudaPlace {
  std::unique_ptr<Device> device = make_device(DeviceKind::Cuda, 1);
  Arena none{*device, 0, "none"};
  Exec ex{*device, device->compute_stream(), none, none, none};
  Buffer memory{*device, 3 * kCount * sizeof(float), "test"};
  Tensor a = tensor_over(memory.data(), DType::f32, {kCount});
  Tensor b = tensor_over(memory.data() + kCount * sizeof(float), DType::f32, {kCount});
  Tensor other = tensor_over(memory.data() + 2 * kCount * sizeof(float), DType::f32, {kCount});

  // Some milliseconds of work: what is issued behind it is done long after the host has gone on.
  void keep_busy() {
    for (int i = 0; i < 200; ++i) fill(other, i);
  }

  void fill(const Tensor& t, double value) { ops::fill(ex, {.out = t, .value = value}); }
  // Whether all elements are the value.
  testing::AssertionResult has_only(const Tensor& t, float value) {
    std::vector<float> found(static_cast<size_t>(t.shape.elements()));
    device->download(t.data, found.data(), found.size() * sizeof(float));
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i] != value)
        return testing::AssertionFailure() << found[i] << " at " << i << ", not " << value;
    }
    return testing::AssertionSuccess();
  }
};

// Fails when a rank reads what another has not written yet, or overwrites what another still reads.
TEST_F(CudaThreadRanks, CollectivesWaitForEachOther) {
  run_ranks(3, kCudaLimit, [](Communicator& world) {
    CudaPlace place;
    const float r = static_cast<float>(world.rank());
    for (int turn = 0; turn < 5; ++turn) {
      if (turn % 3 == world.rank()) place.keep_busy();
      place.fill(place.a, world.rank() + turn);
      world.all_reduce(place.ex, place.a);
      place.fill(place.b, world.rank() * 10);
      const int64_t part = kCount / 3;
      world.reduce_scatter(place.ex, slice(place.b, 0, 0, 3 * part), slice(place.a, 0, 0, part));
      if (turn % 2 == 0) place.keep_busy();
      place.fill(place.b, r);
      EXPECT_TRUE(place.has_only(slice(place.a, 0, 0, part), 30));
      EXPECT_TRUE(place.has_only(slice(place.a, 0, part, kCount - part),
                                 3.0f + 3.0f * static_cast<float>(turn)));
      world.all_gather(place.ex, slice(place.b, 0, 0, part), slice(place.a, 0, 0, 3 * part));
      place.fill(place.b, -1);
      for (int other = 0; other < 3; ++other)
        EXPECT_TRUE(
            place.has_only(slice(place.a, 0, other * part, part), static_cast<float>(other)));
      place.fill(place.a, r);
      world.broadcast(place.ex, place.a, turn % 3);
      EXPECT_TRUE(place.has_only(place.a, static_cast<float>(turn % 3)));
    }
  });
}

// The same for blocks and shards of unequal size.
TEST_F(CudaThreadRanks, UnequalPartsWaitForEachOther) {
  run_ranks(3, kCudaLimit, [](Communicator& world) {
    CudaPlace place;
    constexpr int64_t kPart = kCount / 9;
    const int here = world.rank();
    const std::vector<int64_t> to{kPart, 2 * kPart, 3 * kPart}, from(3, (here + 1) * kPart);
    const std::vector<int64_t> bounds{0, kPart, kPart, 6 * kPart};
    const int64_t begin = bounds[static_cast<size_t>(here)];
    const int64_t own = bounds[static_cast<size_t>(here) + 1] - begin;
    const Tensor whole = slice(place.a, 0, 0, 6 * kPart), shard = slice(place.b, 0, 0, own);
    for (int turn = 0; turn < 6; ++turn) {
      if (turn % 3 == here) place.keep_busy();
      int64_t first = 0;
      for (int r = 0; r < 3; ++r) {
        place.fill(slice(place.a, 0, first, (r + 1) * kPart), 100 * turn + 10 * here + r);
        first += (r + 1) * kPart;
      }
      world.all_to_all(place.ex, whole, to, slice(place.b, 0, 0, 3 * from[0]), from);
      place.fill(place.a, here);
      for (int r = 0; r < 3; ++r) {
        EXPECT_TRUE(place.has_only(slice(place.b, 0, r * from[0], from[0]),
                                   static_cast<float>(100 * turn + 10 * r + here)));
      }
      if ((turn + 1) % 3 == here) place.keep_busy();
      world.reduce_scatter(place.ex, whole, bounds, shard);
      place.fill(place.a, -1);
      EXPECT_TRUE(place.has_only(shard, 3));
      place.fill(shard, here + turn);
      world.all_gather(place.ex, shard, whole, bounds);
      place.fill(shard, -1);
      EXPECT_TRUE(place.has_only(slice(whole, 0, 0, kPart), static_cast<float>(turn)));
      EXPECT_TRUE(place.has_only(slice(whole, 0, kPart, 5 * kPart), static_cast<float>(2 + turn)));
    }
  });
}

// Fails when a message is copied before it is written, or overwritten before it is copied.
TEST_F(CudaThreadRanks, MessagesWaitForEachOther) {
  run_ranks(2, kCudaLimit, [](Communicator& world) {
    CudaPlace place;
    for (int turn = 0; turn < 20; ++turn) {
      // Once the sender is behind, once the receiver; and none of the two is late at the host.
      world.barrier(std::chrono::seconds(60));
      if (turn % 2 == world.rank()) place.keep_busy();
      if (world.rank() == 0) {
        place.fill(place.a, turn);
        world.wait_send(place.ex, world.send(place.ex, place.a, 1, Channel::Forward));
        place.fill(place.a, -1);
      } else {
        world.recv(place.ex, place.b, 0, Channel::Forward);
        EXPECT_TRUE(place.has_only(place.b, static_cast<float>(turn)));
      }
    }
  });
}

// Fails when what is exchanged beside other work does not wait for that work, or is not waited for.
TEST_F(CudaThreadRanks, ExchangesBesideOtherWorkAreOrdered) {
  run_ranks(2, kCudaLimit, [](Communicator& world) {
    CudaPlace place;
    for (int turn = 0; turn < 10; ++turn) {
      if (turn % 2 == world.rank()) place.keep_busy();
      place.fill(place.a, 1 + turn);
      Exec beside = place.ex.on_stream(place.device->comm_stream());
      world.all_reduce(beside, place.a);
      place.fill(place.b, 5);
      place.ex.wait("wait", beside.stream.record());
      ops::copy(place.ex, {.in = place.a, .out = place.b});
      place.fill(place.a, 0);
      EXPECT_TRUE(place.has_only(place.b, 2.0f + 2.0f * static_cast<float>(turn)));
    }
  });
}

// Fails when an event goes with the device that recorded it.
TEST_F(CudaThreadRanks, ARankMayLeaveFirst) {
  for (int turn = 0; turn < 10; ++turn) {
    run_ranks(4, kCudaLimit, [](Communicator& world) {
      CudaPlace place;
      place.fill(place.a, 1);
      world.all_reduce(place.ex, place.a);
      EXPECT_TRUE(world.rank() % 2 == 0 || place.has_only(place.a, 4));
    });
  }
}

}  // namespace
}  // namespace bev
