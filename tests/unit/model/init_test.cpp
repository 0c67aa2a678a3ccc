// Initial weights by Megatron-LM's rule, as declared by the modules.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/make_device.h"
#include "support/tiny_models.h"
#include "train/training_state.h"

namespace bev {
namespace {

// Faults that fail it: the output projections drawn as wide as the rest, layers counted once
// instead of twice, a bias that is not zero.
TEST(Init, FollowsMegatronsRule) {
  for (const test::TinyModel& model : test::tiny_models()) {
    const auto device = make_null_device(DeviceKind::Reference, 1);
    TrainingState assembly(model.config, *device, {});
    const double wide = model.config.model.init_std;
    // The post-norm BERT of 2019 scales with --deep-init only.
    const bool is_scaled = model.config.model.norm_placement == NormPlacement::Pre;
    const auto layers = static_cast<double>(model.config.model.layers);  // of a T5: its encoder's
    const double narrow = is_scaled ? wide / std::sqrt(2.0 * layers) : wide;
    for (const Param* param : assembly.params.all()) {
      const std::string& name = param->spec.name;
      const Init& init = param->spec.init;
      const bool writes_residual =
          name.ends_with("attention.out.weight") || name.ends_with("mlp.down.weight");
      if (name.ends_with(".bias")) {
        EXPECT_EQ(init.kind, Init::Kind::Zeros) << name;
      } else if (name.find("norm") != std::string::npos) {
        EXPECT_EQ(init.kind, Init::Kind::Ones) << name;
      } else {
        EXPECT_EQ(init.kind, Init::Kind::Normal) << name;
        EXPECT_DOUBLE_EQ(init.std, writes_residual ? narrow : wide) << name;
      }
      // Weight decay: matrices and embeddings only.
      EXPECT_EQ(param->spec.decays(), param->spec.shape.rank() == 2) << name;
    }
  }
}

}  // namespace
}  // namespace bev
