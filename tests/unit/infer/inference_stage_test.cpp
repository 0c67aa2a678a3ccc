#include "infer/inference_stage.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/tolerance.h"
#include "unit/infer/stored_model.h"

namespace bev {
namespace {

// The blocks of inference against those of training, which differ in code.
TEST(InferenceStage, LossesAreThoseOfTraining) {
  Config with_qk_norm = test::tiny_llama();
  with_qk_norm.model.qk_norm = true;
  for (const Config& config : {test::tiny_gpt(), test::tiny_llama(), with_qk_norm}) {
    const test::StoredModel stored(config);
    LoadedModel model = stored.load(1, 8);
    HostBatch batch = test::batch_of({1, 7, 3, 28, 0, 5, 11, 2});
    for (size_t i = 0; i < batch.targets.size(); ++i) {
      batch.targets[i] = static_cast<int32_t>(3 * i + 1);
      batch.weight[i] = 1;
    }
    std::vector<double> losses(batch.targets.size());
    test::whole_forward(model.placed(), batch,
                        {.token_losses = tensor_over(reinterpret_cast<std::byte*>(losses.data()),
                                                     DType::f64, {batch.tokens_count()})});
    const double sum = std::accumulate(losses.begin(), losses.end(), 0.0);
    const LossSum expected = model.executor().evaluate({&batch, 1}).front();
    EXPECT_NEAR(sum, expected.sum, test::tolerance(DType::f64, 29, 10) * expected.sum);
  }
}

}  // namespace
}  // namespace bev
