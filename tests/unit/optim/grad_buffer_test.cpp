#include "optim/grad_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ops/make_device.h"
#include "support/small_run.h"

namespace bev {
namespace {

// Vectors between matrices, as a model declares them.
struct Model {
  explicit Model(DeviceKind kind, DType dtype)
      : device(make_device(kind, 1)), params(*device, {}, 0, dtype) {
    params.declare({.name = "table", .shape = {5, 3}});
    params.declare({.name = "norm", .shape = {3}, .role = Role::Norm});
    params.declare({.name = "weight", .shape = {3, 40}});
    params.declare({.name = "bias", .shape = {70}, .role = Role::Bias});
    params.allocate();
  }
  std::unique_ptr<Device> device;
  ParamStore params;
};

TEST(GradBuffer, StepBeginsWithVectorsAtZeroAndMatricesUntouched) {
  Model model(DeviceKind::Reference, DType::f64);
  GradBuffer grads(model.params);
  const Tensor all = grads.range(0, model.params.flat_elements());
  std::fill_n(reinterpret_cast<double*>(all.data), all.shape[0], 7.0);
  Arena none(*model.device, 0, "none");
  Exec ex{*model.device, model.device->compute_stream(), none, none, none};
  grads.begin_step(ex);
  for (const Param* param : model.params.all()) {
    const bool matrix = param->spec.is_matrix();
    for (const double value : test::values_of(param->grad)) EXPECT_EQ(value, matrix ? 7 : 0);
    EXPECT_EQ(param->grad_started, !matrix) << param->spec.name;
  }
}

// Fails when a bucket is written where the one before may still be summed.
TEST(GradBuffer, BucketsPassThroughTwoMemoriesInTurn) {
  const auto device = make_device(DeviceKind::Reference, 1);
  for (const bool overlaps : {false, true}) {
    const ParallelLayout layout{.data = 2, .zero = 2, .overlaps_grad_reduce = overlaps};
    ParamStore params(*device, layout, 0, DType::f64);
    for (const char* name : {"first", "second", "third"}) {
      params.begin_bucket();
      params.declare({.name = name, .shape = {2, 64}});
    }
    params.allocate();
    const GradBuffer grads(params);
    const std::span<Param* const> all = params.all();
    EXPECT_EQ(all[0]->grad.data, all[2]->grad.data);
    EXPECT_EQ(all[0]->grad.data == all[1]->grad.data, !overlaps);
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_EQ(grads.staging(params.sections()[i]).data, all[i]->grad.data);
  }
}

TEST(GradBuffer, HasOnePartForEachDtype) {
  Model model(DeviceKind::Cpu, DType::bf16);
  const GradBuffer all_long(model.params);
  EXPECT_EQ(all_long.range(0, model.params.flat_elements()).dtype, DType::f32);
  const GradBuffer mixed(model.params, StatePrecision::Bf16);
  EXPECT_EQ(mixed.range(0, 64 + 128).dtype, DType::bf16);
  EXPECT_EQ(mixed.range(64 + 128, 64 + 128).dtype, DType::f32);
}

}  // namespace
}  // namespace bev
