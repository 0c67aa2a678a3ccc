#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/error.h"
#include "comm/planning_communicator.h"
#include "ops/make_device.h"
#include "parallel/tensor_region.h"
#include "support/expect_error.h"

namespace bev {
namespace {

class Single : public ::testing::Test {
 protected:
  Tensor over(std::array<double, 4>& values) {
    return tensor_over(reinterpret_cast<std::byte*>(values.data()), DType::f64, {4});
  }
  std::unique_ptr<Device> device_ = make_device(DeviceKind::Reference, 1);
  Arena arena_{*device_, 0, "none"};
  CostLog cost_;
  Exec ex_{*device_, device_->compute_stream(), arena_, arena_, arena_, &cost_};
  SingleCommunicator alone_;
};

TEST_F(Single, CollectivesAreCopiesOrNothing) {
  std::array<double, 4> a{1, 2, 3, 4}, b{}, c{}, d{}, e{}, f{}, g{};
  alone_.all_reduce(ex_, over(a));
  alone_.broadcast(ex_, over(a), 0);
  alone_.all_gather(ex_, over(a), over(b));
  alone_.reduce_scatter(ex_, over(b), over(c));
  EXPECT_EQ(a, (std::array<double, 4>{1, 2, 3, 4}));
  EXPECT_EQ(b, a);
  EXPECT_EQ(c, a);
  const std::array<int64_t, 2> bounds{0, 4};
  const std::array<int64_t, 1> rows{4};
  alone_.all_gather(ex_, over(a), over(d), bounds);
  alone_.reduce_scatter(ex_, over(a), bounds, over(e));
  alone_.all_to_all(ex_, over(a), over(f));
  alone_.all_to_all(ex_, over(a), rows, over(g), rows);
  EXPECT_EQ(d, a);
  EXPECT_EQ(e, a);
  EXPECT_EQ(f, a);
  EXPECT_EQ(g, a);
  EXPECT_TRUE(cost_.records().empty());
}

TEST_F(Single, RefusesWhatOneRankCannotDo) {
  std::array<double, 4> a{};
  EXPECT_THROW(static_cast<void>(alone_.send(ex_, over(a), 1, Channel::Forward)), Error);
  EXPECT_THROW(alone_.recv(ex_, over(a), 0, Channel::Forward), Error);
  EXPECT_THROW(alone_.broadcast(ex_, over(a), 1), Error);
  EXPECT_THROW(alone_.all_gather(ex_, slice(over(a), 0, 0, 3), over(a)), Error);
}

// With one rank the borders are free: no copy, the same memory.
TEST_F(Single, RegionBordersAreTheTensorItself) {
  std::array<double, 4> a{1, 2, 3, 4};
  for (const bool sequence : {false, true}) {
    const TensorRegion region(alone_, sequence);
    EXPECT_EQ(region.enter(ex_, over(a), ex_.scratch).data, over(a).data);
    EXPECT_EQ(region.partial_buffer(ex_, over(a)).data, over(a).data);
    region.leave(ex_, over(a), over(a));
    EXPECT_EQ(region.on_one_member(over(a)).data, over(a).data);
  }
}

// Rank 1 of 3, without data: only checks and counts. Every test names the fault that makes it
// fail.
class Planning : public ::testing::Test {
 protected:
  using Rows = std::vector<int64_t>;

  Tensor f32(Shape shape) {
    return tensor_over(static_cast<std::byte*>(nullptr), DType::f32, shape);
  }
  // Rows of 4 elements, of which the last is not the tensor's.
  Tensor with_gaps(int64_t rows) { return slice(f32({rows, 4}), 1, 0, 3); }
  void refused(const std::string& text, FunctionRef<void()> call) {
    test::expect_error(ErrorKind::Internal, text, call);
    EXPECT_TRUE(cost_.records().empty()) << text;
  }
  double sent(FunctionRef<void()> call) {
    const double before = ranks_.bytes_sent();
    call();
    const double bytes = ranks_.bytes_sent() - before;
    EXPECT_EQ(total_of(cost_.records()).bytes_sent, bytes);
    cost_.clear();
    return bytes;
  }

  std::unique_ptr<Device> device_ = make_device(DeviceKind::Reference, 1);
  Arena arena_{*device_, 0, "none"};
  CostLog cost_;
  Exec ex_{*device_, device_->compute_stream(), arena_, arena_, arena_, &cost_};
  PlanningCommunicator ranks_{1, 3};
};

// Fails when what a rank keeps is counted, or what goes to others is not.
TEST_F(Planning, CountsWhatGoesToOtherRanks) {
  EXPECT_EQ(sent([&] { ranks_.all_to_all(ex_, f32({6, 5}), f32({6, 5})); }), 4 * 5 * 4);
  EXPECT_EQ(
      sent([&] { ranks_.all_to_all(ex_, f32({9, 5}), Rows{7, 2, 0}, f32({3, 5}), Rows{0, 2, 1}); }),
      7 * 5 * 4);
  const Rows bounds{0, 1, 5, 7};
  EXPECT_EQ(sent([&] { ranks_.all_gather(ex_, f32({4, 5}), f32({7, 5}), bounds); }), 2 * 4 * 5 * 4);
  EXPECT_EQ(sent([&] { ranks_.reduce_scatter(ex_, f32({7, 5}), bounds, f32({4, 5})); }), 3 * 5 * 4);
  EXPECT_EQ(sent([&] { ranks_.reduce_scatter(ex_, f32({9}), f32({3})); }), 6 * 4);
}

// Fails when a record lacks the name, the shape, the group or the place of a collective.
TEST_F(Planning, RecordsWhatItSends) {
  ranks_.set_label(7);
  cost_.set_place(Phase::BackwardInput, 5);
  ranks_.all_reduce(ex_, f32({6, 5}));
  cost_.set_place(Phase::Update, -1);
  ranks_.split(std::vector<int>{0, 1})->broadcast(ex_, f32({3}), 0);
  ASSERT_EQ(cost_.records().size(), 2);
  const OpCost &sum = cost_.records()[0], &broadcast = cost_.records()[1];
  EXPECT_EQ(sum.op, "all_reduce");
  EXPECT_EQ(sum.dims, (std::array<int64_t, 4>{6, 5, 0, 0}));
  EXPECT_EQ(sum.dtype, DType::f32);
  EXPECT_EQ(sum.group, 7);
  EXPECT_EQ(sum.phase, Phase::BackwardInput);
  EXPECT_EQ(sum.stage, 5);
  EXPECT_EQ(sum.bytes_sent, 2.0 * 6 * 5 * 4 * 2 / 3);
  EXPECT_EQ(broadcast.op, "broadcast");
  EXPECT_EQ(broadcast.group, 7);
  EXPECT_EQ(broadcast.phase, Phase::Update);
  EXPECT_EQ(broadcast.stage, -1);
  EXPECT_EQ(broadcast.bytes_sent, 0);
}

// Fails when a rule about the row counts is not checked.
TEST_F(Planning, RefusesCountsThatDoNotFit) {
  const auto exchange = [&](const Rows& to, const Rows& from) {
    return [this, to, from] { ranks_.all_to_all(ex_, f32({4, 2}), to, f32({4, 2}), from); };
  };
  const Rows good{1, 2, 1};
  exchange(good, good)();
  cost_.clear();
  for (const Rows& bad : {Rows{1, 2, 2}, Rows{1, 2, 0}, Rows{2, 2}, Rows{1, 2, 1, 0}, Rows{},
                          Rows{-1, 2, 3}, Rows{3, 2, -1}}) {
    refused("rows to 3 ranks", exchange(bad, good));
    refused("rows from 3 ranks", exchange(good, bad));
  }
  refused("rank 1 sends itself 2 rows and expects 1", exchange(good, {2, 1, 1}));
  refused("rows to 3 ranks", [&] { ranks_.all_to_all(ex_, f32({4, 2}), f32({4, 2})); });
  refused("rows from 3 ranks", [&] { ranks_.all_to_all(ex_, f32({6, 2}), f32({3, 2})); });
}

// Fails when tensors of different rows, or with gaps, are taken.
TEST_F(Planning, RefusesTensorsThatDoNotFit) {
  const auto exchange = [&](const Tensor& in, const Tensor& out) {
    return [this, in, out] { ranks_.all_to_all(ex_, in, out); };
  };
  Tensor other = f32({3, 3});
  other.dtype = DType::bf16;
  refused("all_to_all of [3, 3] f32 to [3, 3] bf16", exchange(f32({3, 3}), other));
  refused("all_to_all of [3, 3] f32 to [3, 4] f32", exchange(f32({3, 3}), f32({3, 4})));
  refused("all_to_all", exchange(with_gaps(3), f32({3, 3})));
  refused("all_to_all", exchange(f32({3, 3}), with_gaps(3)));
  refused("all_to_all", exchange({}, {}));
  std::array<std::byte, 64> memory{};
  const Tensor whole = tensor_over(memory.data(), DType::f32, {16});
  refused("all_to_all", exchange(slice(whole, 0, 0, 9), slice(whole, 0, 7, 9)));
  exchange(slice(whole, 0, 0, 6), slice(whole, 0, 6, 6))();
}

// Fails when a rule about the bounds of shards is not checked.
TEST_F(Planning, RefusesBoundsThatDoNotFit) {
  const auto gather = [&](const Tensor& shard, const Tensor& whole, const Rows& bounds) {
    return [this, shard, whole, bounds] { ranks_.all_gather(ex_, shard, whole, bounds); };
  };
  const auto scatter = [&](const Tensor& shard, const Tensor& whole, const Rows& bounds) {
    return [this, shard, whole, bounds] { ranks_.reduce_scatter(ex_, whole, bounds, shard); };
  };
  const Tensor whole = f32({7, 3}), shard = f32({2, 3});
  for (const Rows& bad : {Rows{0, 3, 5}, Rows{0, 3, 5, 7, 7}, Rows{}, Rows{1, 3, 5, 7},
                          Rows{0, 3, 5, 6}, Rows{0, 3, 5, 8}, Rows{0, 6, 8, 7}}) {
    refused("all_gather: bounds", gather(shard, whole, bad));
    refused("reduce_scatter: bounds", scatter(shard, whole, bad));
  }
  const Rows bounds{0, 3, 5, 7};
  gather(shard, whole, bounds)();
  scatter(shard, whole, bounds)();
  cost_.clear();
  Tensor other = shard;
  other.dtype = DType::bf16;
  for (const Tensor& bad : {other, with_gaps(2), f32({3, 3}), f32({1, 3}), f32({2, 2}), Tensor{}}) {
    refused("all_gather: shard", gather(bad, whole, bounds));
    refused("reduce_scatter: shard", scatter(bad, whole, bounds));
  }
  refused("all_gather: shard", gather(shard, with_gaps(7), bounds));
}

}  // namespace
}  // namespace bev
