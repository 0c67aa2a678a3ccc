#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <array>

#include "base/error.h"

namespace bev {
namespace {

TEST(Tensor, SlicesKeepStrides) {
  std::array<float, 24> data{};
  const Tensor t = tensor_over(reinterpret_cast<std::byte*>(data.data()), DType::f32, {4, 6});
  const Tensor s = slice(t, 1, 2, 4);
  EXPECT_EQ(s.shape, (Shape{4, 4}));
  EXPECT_EQ(s.stride[0], 6);
  EXPECT_EQ(s.data, reinterpret_cast<std::byte*>(&data[2]));
  EXPECT_FALSE(is_contiguous(s));
  EXPECT_TRUE(is_contiguous(slice(t, 0, 1, 2)));
  const Tensor heads = split_last(s, 2);
  EXPECT_EQ(heads.shape, (Shape{4, 2, 2}));
  EXPECT_EQ(heads.stride[0], 6);
  EXPECT_EQ(heads.stride[1], 2);
  EXPECT_THROW(slice(t, 1, 5, 2), Error);
  EXPECT_THROW(reshape(s, {16}), Error);
  EXPECT_THROW(split_last(t, 4), Error);
}

TEST(Shape, CountsElements) {
  EXPECT_EQ((Shape{3, 0, 5}).elements(), 0);
  EXPECT_EQ(to_string(Shape{2, 64}), "[2, 64]");
  EXPECT_THROW((Shape{1, 2, 3, 4, 5, 6}), Error);
}

}  // namespace
}  // namespace bev
