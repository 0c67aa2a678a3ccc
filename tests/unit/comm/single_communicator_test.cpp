#include <gtest/gtest.h>

#include <array>

#include "base/error.h"
#include "comm/communicator.h"
#include "ops/make_device.h"
#include "parallel/tensor_region.h"

namespace bev {
namespace {

class Single : public ::testing::Test {
 protected:
  Tensor over(std::array<double, 4>& values) {
    return tensor_over(reinterpret_cast<std::byte*>(values.data()), DType::f64, {4});
  }
  std::unique_ptr<Device> device_ = make_device(DeviceKind::Reference, 1);
  Arena arena_{*device_, 0, "none"};
  Cost cost_;
  Exec ex_{*device_, device_->compute_stream(), arena_, arena_, arena_, &cost_};
  SingleCommunicator alone_;
};

TEST_F(Single, CollectivesAreCopiesOrNothing) {
  std::array<double, 4> a{1, 2, 3, 4}, b{}, c{};
  alone_.all_reduce(ex_, over(a));
  alone_.broadcast(ex_, over(a), 0);
  alone_.all_gather(ex_, over(a), over(b));
  alone_.reduce_scatter(ex_, over(b), over(c));
  EXPECT_EQ(a, (std::array<double, 4>{1, 2, 3, 4}));
  EXPECT_EQ(b, a);
  EXPECT_EQ(c, a);
  EXPECT_EQ(cost_.bytes_sent, 0);
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
    EXPECT_EQ(region.enter(ex_, over(a)).data, over(a).data);
    EXPECT_EQ(region.partial_buffer(ex_, over(a)).data, over(a).data);
    region.leave(ex_, over(a), over(a));
    EXPECT_EQ(region.on_one_member(over(a)).data, over(a).data);
  }
}

}  // namespace
}  // namespace bev
