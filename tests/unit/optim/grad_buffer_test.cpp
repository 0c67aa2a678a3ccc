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
    params.declare({.name = "norm", .shape = {3}, .decay = false});
    params.declare({.name = "weight", .shape = {3, 40}});
    params.declare({.name = "bias", .shape = {70}, .decay = false});
    params.allocate();
  }
  std::unique_ptr<Device> device;
  ParamStore params;
};

TEST(GradBuffer, StepBeginsWithVectorsAtZeroAndMatricesUntouched) {
  Model model(DeviceKind::Reference, DType::f64);
  GradBuffer grads(model.params);
  for (const Tensor& part : grads.flat()) {
    std::fill_n(reinterpret_cast<double*>(part.data), part.shape[0], 7.0);
  }
  Arena none(*model.device, 0, "none");
  Exec ex{*model.device, model.device->compute_stream(), none, none, none};
  grads.begin_step(ex);
  for (const Param* param : model.params.distinct()) {
    const bool matrix = param->spec.is_matrix();
    for (const double value : test::values_of(param->grad)) EXPECT_EQ(value, matrix ? 7 : 0);
    EXPECT_EQ(param->grad_started, !matrix) << param->spec.name;
  }
}

TEST(GradBuffer, HasOnePartForEachDtype) {
  Model model(DeviceKind::Cpu, DType::bf16);
  const GradBuffer all_long(model.params);
  ASSERT_EQ(all_long.flat().size(), 1u);
  EXPECT_EQ(all_long.flat()[0].shape[0], model.params.flat_elements());
  const GradBuffer mixed(model.params, StatePrecision::Bf16);
  ASSERT_EQ(mixed.flat().size(), 2u);
  EXPECT_EQ(mixed.flat()[0].dtype, DType::bf16);
  EXPECT_EQ(mixed.flat()[0].shape[0], 64 + 128);
  EXPECT_EQ(mixed.flat()[1].dtype, DType::f32);
  EXPECT_EQ(mixed.flat()[1].shape[0], 64 + 128);
}

}  // namespace
}  // namespace bev
